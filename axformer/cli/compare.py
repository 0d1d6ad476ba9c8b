"""``axformer compare``: two to six jobs or local results side by side, by name or by label."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from axformer.cli.display import duration
from axformer.cli.failing import failing
from axformer.cli.options import labels_of
from axformer.cli.remote import JsonOption, id_of, output, print_plain, result_here, service
from axformer.cli.words import NOTHING, progress, shown_id, state
from axformer.client import Job
from axformer.errors import InputError
from axformer.plan.result_files import read_result
from axformer.reporting.card_tables import sizes_of
from axformer.reporting.deploy_table import deployables
from axformer.reporting.side_by_side import side_by_side
from axformer.wire.metrics import in_words

LEAST, MOST = 2, 6
"""``show`` shows a single job; more than six do not fit a screen."""
_MANY = 4
_REPORT = "report.json"
_MADE = "made here"


@dataclass(frozen=True)
class _Compared:
    """A job or a local result."""

    name: str
    source: str
    """The job's id, or the directory."""
    state: Text | str
    preset: str
    config: Mapping[str, Any]
    trials: str
    report: Mapping[str, Any] | None
    """The content of its ``report.json``, of a job the part that the service shows; None without a result."""
    content: Mapping[str, Any]
    """What ``--json`` prints."""

    @property
    def is_here(self) -> bool:
        """Whether it is a local result."""
        return self.state == _MADE


def compare(
    sources: Annotated[
        list[str] | None,
        typer.Argument(help=f"{LEAST} to {MOST} jobs or directories of results.", metavar="JOB|RESULT..."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="Compare the jobs with this label, too: key=value; repeated, those with all of them."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--plot", help="Write a picture of all results here, as SVG: what each costs, and how fast it is."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare jobs and local results: the knobs in which they differ, and the result of each."""
    with failing():
        found = _found(sources or [], labels_of(label))
        if picture is not None:
            picture.write_text(_drawn(found), encoding="utf-8")
    if as_json:
        print_plain([one.content for one in found])
    else:
        console = output()
        console.print(_table(found, console.width))


def _found(sources: Sequence[str], labels: Mapping[str, str]) -> list[_Compared]:
    """What the sources name, then the jobs with these labels, the oldest first."""
    if not labels or len(sources) > MOST:
        _check_count(len(sources))
    local = {source: _of_result(here) for source in sources if (here := result_here(source)) is not None}
    if not labels and len(local) == len(set(sources)):
        return [local[source] for source in sources]
    with service() as client:
        found = [local.get(source) or _of_job(client.job(id_of(client, source))) for source in sources]
        labelled = islice(client.jobs(labels=labels), MOST + 1) if labels else ()
        known = [one.source for one in found]
        found += [_of_job(job) for job in reversed(list(labelled)) if job.id not in known]
    _check_count(len(found))
    return found


def _check_count(count: int) -> None:
    if not LEAST <= count <= MOST:
        raise InputError(f"compare takes {LEAST} to {MOST} jobs or results, not {count}")


def _of_job(job: Job) -> _Compared:
    report = None if job.report is None else job.report.model_dump()
    trials, content = progress(job.progress), job.model_dump(mode="json")
    return _Compared(job.name, job.id, state(job.state), job.preset, job.config, trials, report, content)


def _of_result(directory: Path) -> _Compared:
    try:
        report = json.loads(read_result(directory, _REPORT))
        config, trials = report["config"], f"{report['trials']:,}"
        counted = {**report, "removed_count": len(report["removed"])}
    except (ValueError, KeyError, TypeError) as error:
        why = f"it has no '{error.args[0]}'" if isinstance(error, KeyError) else error
        raise InputError(f"'{directory}' is no result of a run: {why}") from None
    content = {"result": str(directory), "report": report}
    name = directory.resolve().name
    return _Compared(name, str(directory), _MADE, NOTHING, config, trials, counted, content)


def _drawn(compared: Sequence[_Compared]) -> str:
    named = [(one.name, deployables(one.report)) for one in compared if one.report is not None]
    return side_by_side([(name, forms) for name, forms in named if forms is not None])


def _table(compared: Sequence[_Compared], width: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, collapse_padding=True)
    table.add_column("", style="dim", no_wrap=len(compared) < _MANY, overflow="fold")
    for one in compared:
        table.add_column(Text(one.name, no_wrap=True, overflow="ellipsis"), justify="right", min_width=9)
    sources = (one.source if one.is_here else shown_id(one.source, width) for one in compared)
    table.add_row("job or result", *sources)
    table.add_row("state", *(one.state for one in compared))
    if any(one.preset != NOTHING for one in compared):
        table.add_row("preset", *(one.preset for one in compared))
    for name, values in _differing(compared):
        table.add_row(name, *values)
    table.add_row("trials", *(one.trials for one in compared))
    results = [{} if one.report is None else _of_run(one.report) for one in compared]
    figures = [{} if one.report is None else _figures(one.report) for one in compared]
    for columns in (results, figures):
        for name in dict.fromkeys(name for column in columns for name in column):
            table.add_row(name, *(column.get(name, NOTHING) for column in columns))
        table.add_section()
    return table


def _differing(compared: Sequence[_Compared]) -> Iterator[tuple[str, list[str]]]:
    """Knobs that differ, and settings of their trainings."""
    for name in sorted({name for one in compared for name in one.config}):
        values = [str(one.config.get(name, NOTHING)) for one in compared]
        if len(set(values)) > 1:
            yield name, values
    trainings = [(one.report or {}).get("finetune") for one in compared]
    if any(trainings):
        yield "trained", [NOTHING if one is None else _epochs(one["epochs"]) for one in trainings]
    settings = [one["settings"] for one in trainings if one]
    for name in sorted({name for one in settings for name in one} - {"epochs"}):
        if len({str(one.get(name)) for one in settings}) > 1:
            yield f"  {name}", [str(one["settings"].get(name, NOTHING)) if one else NOTHING for one in trainings]


def _epochs(count: int | None) -> str:
    return "yes" if count is None else f"{count} epoch{'s' * (count != 1)}"  # earlier reports do not say


def _of_run(report: Mapping[str, Any]) -> dict[str, str]:
    return {"the run took": duration(report["seconds"]), "elements removed": str(report["removed_count"])}


def _figures(report: Mapping[str, Any]) -> dict[str, str]:
    """Each figure of a report by its name for people, as ``before → after``."""
    rows = []
    for data, words in (("validation", "validation"), ("test", "held-out")):
        before, after = (report[side].get(data) or {} for side in ("base", "pruned"))
        both = ((f"{words} {in_words(name)}", before[name], after[name]) for name in before if name in after)
        rows += [(name, f"{first:.4f}", f"{last:.4f}") for name, first, last in both]
    rows += [(name, before, after) for name, before, after, _ in sizes_of(report)]
    return {name: f"{before} → {after}" for name, before, after in rows}
