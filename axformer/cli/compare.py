"""``axformer compare``: two to six jobs side by side."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from axformer.cli.display import SIZES, duration
from axformer.cli.failing import failing
from axformer.cli.remote import JsonOption, output, print_json, service
from axformer.cli.words import NOTHING, progress, state
from axformer.client import Job
from axformer.errors import InputError
from axformer.reporting.deploy_table import deployables
from axformer.reporting.side_by_side import side_by_side

LEAST, MOST = 2, 6
"""``show`` shows a single job; more than six do not fit a screen."""


def compare(
    jobs: Annotated[list[str], typer.Argument(help=f"Ids of {LEAST} to {MOST} jobs.", metavar="JOB...")],
    picture: Annotated[
        Path | None,
        typer.Option(
            "--plot", help="Write a picture of all results here, as SVG: what each costs, and how fast it is."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare jobs: the knobs in which they differ, and the result of each."""
    with failing():
        if not LEAST <= len(jobs) <= MOST:
            raise InputError(f"compare takes {LEAST} to {MOST} jobs, not {len(jobs)}")
    with service() as client:
        found = [client.job(job) for job in jobs]
    if picture is not None:
        with failing():
            picture.write_text(_drawn(found), encoding="utf-8")
    if as_json:
        print_json(found)
    else:
        output().print(_table(found))


def _drawn(jobs: list[Job]) -> str:
    named = [(job.name, deployables(job.report.model_dump())) for job in jobs if job.report is not None]
    return side_by_side([(name, forms) for name, forms in named if forms is not None])


def _table(jobs: list[Job]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("", style="dim", no_wrap=True)
    for job in jobs:
        table.add_column(job.name, justify="right", overflow="fold")
    table.add_row("job", *(job.id for job in jobs))
    table.add_row("state", *(state(job.state) for job in jobs))
    table.add_row("preset", *(job.preset for job in jobs))
    for name, values in _differing(jobs):
        table.add_row(name, *values)
    table.add_row("trials", *(progress(job.progress) for job in jobs))
    table.add_row("the pass took", *(_of(job, lambda report: duration(report["seconds"])) for job in jobs))
    table.add_row("elements removed", *(_of(job, lambda report: str(report["removed_count"])) for job in jobs))
    table.add_section()
    for words, cell in _figures(jobs):
        table.add_row(words, *(_of(job, cell) for job in jobs))
    return table


def _differing(jobs: list[Job]) -> Iterator[tuple[str, list[str]]]:
    """Knobs that differ between jobs."""
    for name in sorted({name for job in jobs for name in job.config}):
        values = [str(job.config.get(name, NOTHING)) for job in jobs]
        if len(set(values)) > 1:
            yield name, values


Cell = Callable[[dict[str, Any]], str]


def _figures(jobs: list[Job]) -> Iterator[tuple[str, Cell]]:
    """Each figure that any job's report has, as ``before → after``."""
    reports = [job.report for job in jobs if job.report is not None]
    for data, words in (("validation", "validation"), ("test", "held-out")):
        names = {name: None for report in reports for name in report.base.get(data) or {}}
        for name in names:
            yield f"{words} {name.replace('_', ' ')}", _cell((data, name), 1.0, ".4f")
    for words, name, scale, form in SIZES:
        if any(report.base.get(name) is not None for report in reports):
            yield words, _cell((name,), scale, form)
    if any(report.one_position_ms is not None for report in reports):
        yield (
            "  by pruning alone",
            lambda report: f"{report['one_position_ms']:.2f} → {report['pruned']['latency_ms']:.2f}",
        )


def _cell(path: tuple[str, ...], scale: float, form: str) -> Cell:
    def cell(report: dict[str, Any]) -> str:
        sides = []
        for side in (report["base"], report["pruned"]):
            value: Any = side
            for name in path:
                value = value[name]
            sides.append(format(value / scale, form))
        return " → ".join(sides)

    return cell


def _of(job: Job, cell: Cell) -> str:
    """A cell of a job's report; a dash without a report."""
    try:
        return NOTHING if job.report is None else cell(job.report.model_dump())
    except (KeyError, TypeError):
        return NOTHING
