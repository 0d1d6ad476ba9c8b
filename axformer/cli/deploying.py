"""The first answer of a finished run: what can be deployed, at which metric and speed, and which form to take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from axformer.cli.characters import Terminal
from axformer.cli.display import before_and_after, finding_line
from axformer.cli.failing import EXIT_MISSED, EXIT_NOT_MET
from axformer.errors import ConfigError
from axformer.forms.kinds import COMPACT, KINDS, WEIGHTS
from axformer.reporting.deploy_table import PATH_TITLE, deployables, deployed_path
from axformer.reporting.rendering import Table as TextTable
from axformer.scores.path_costs import told_beyond
from axformer.scores.planning import POINT
from axformer.wire.jobs import JobRead
from axformer.wire.metrics import EMBEDDING
from axformer.wire.report import PathPoint

_WIDE = 120
"""Columns of a terminal that shows the whole table."""
_ONLY_WIDE = ("answers changed", "one input, ms", "inputs a second", "MB")
"""What a narrower one leaves out."""


def show_target(console: Console, report: Mapping[str, Any]) -> None:
    """Print whether the target was reached; nothing for a run without one."""
    target = report.get("target")
    if target is not None:
        is_good = target["reached"] and target.get("usable") is not False
        console.print(target["sentence"], style="bold green" if is_good else "bold red", soft_wrap=True)


def show_certificate(console: Console, report: Mapping[str, Any]) -> None:
    """Print the certificate, and why it or the held-out figures cannot be relied on; nothing where there is neither."""
    certificate, doubt = report.get("certificate"), report.get("doubt")
    if certificate is not None:
        console.print(certificate["sentence"], soft_wrap=True)
    if doubt is not None:
        console.print(doubt, style="bold red", soft_wrap=True)


def exit_if_missed(report: Mapping[str, Any], forms: Sequence[str] = ()) -> None:
    """End the command with an exit code of its own if the run did not bring what was asked for.

    Args:
        report: the content of a ``report.json``, or its summary.
        forms: the forms that were asked for.

    Raises:
        Exit: the target was not reached, or by a model of no use, or a form is missing.
    """
    target = report.get("target")
    left_out = [form for form in report.get("forms") or () if not form["made"]]
    missing = [form["name"] for form in left_out if form["name"] in forms or form.get("failed")]
    if missing or (target is not None and (not target["reached"] or target.get("usable") is False)):
        raise typer.Exit(EXIT_MISSED)


@dataclass(frozen=True)
class Required:
    """What the advice of a result must meet, in a run that nobody watches."""

    certified: bool = False
    times: float | None = None
    """The lower end of how many times as fast the advised form is."""
    points: float | None = None
    """The most points that the advised form may have lost, by the whole interval."""

    @classmethod
    def parse(cls, text: str | None) -> "Required":
        """Parse ``certified,times>=1.5,points<=1``.

        Raises:
            ConfigError: a part cannot be read.
        """
        found: dict[str, Any] = {}
        for part in (text or "").split(","):
            name = next((one for one in ("times>=", "points<=") if part.strip().startswith(one)), None)
            try:
                if name is not None:
                    found[name[:-2]] = float(part.strip().removeprefix(name))
                elif part.strip() == "certified":
                    found["certified"] = True
                elif part.strip():
                    raise ValueError
            except ValueError:
                raise ConfigError(
                    f"--require '{part.strip()}' is unknown; write for example certified,times>=1.5,points<=1"
                ) from None
        return cls(**found)

    def unmet(self, advice: Mapping[str, Any] | None) -> str | None:
        """The first thing that the advice does not meet, as a sentence; None if it meets all."""
        if self == NOTHING:
            return None
        if advice is None or advice["form"] is None:
            return "no form is advised"
        if self.certified and not advice["certified"]:
            return f"the form {advice['form']} is not certified"
        times, change = advice["times"], advice["change"]
        if self.times is not None and (times is None or times[0] < self.times):
            return f"the form {advice['form']} is not shown to be {self.times:g} times as fast"
        if self.points is not None and (change is None or change[0] < -self.points * POINT):
            return f"the form {advice['form']} is not shown to have lost at most {self.points:g} points"
        return None


NOTHING = Required()
"""Nothing is required."""


def exit_if_unmet(report: Mapping[str, Any], required: Required) -> None:
    """End the command with an exit code of its own, and say why, if the advice does not meet what is required.

    Raises:
        Exit: it does not.
    """
    unmet = required.unmet(report.get("advice"))
    if unmet is not None:
        Terminal(stderr=True).print(f"not met: {unmet}", soft_wrap=True)
        raise typer.Exit(EXIT_NOT_MET)


def show_result(console: Console, job: JobRead) -> None:
    """Print the result of a job, as far as it has one: what its report says, or the last line of each report of an analysis."""
    for finding in job.findings or ():
        console.print(Text.assemble((finding.report, "bold"), f": {finding.sentence}"), soft_wrap=True)
        if finding.command:
            console.print(f"  {finding.command}", soft_wrap=True)
    if job.report is None:
        return
    report = job.report.model_dump()
    show_target(console, report)
    show_deployables(console, report)
    console.print(before_and_after(report))
    show_certificate(console, report)
    if report["finding"] is not None:
        console.print(finding_line(report["finding"]), soft_wrap=True)


def show_loading(console: Console, report: Mapping[str, Any], directory: Path) -> None:
    """Print how to load each form of a result that was written to a directory.

    Args:
        report: the content of its ``report.json``.
        directory: where it lies.
    """
    made = [form["name"] for form in report["forms"] if form["made"]]
    lines = [f"{directory}/{KINDS[name].place}: {_loaded_by(name, report['task'])}" for name in made]
    lines += [f"not published: {form['reason']}" for form in report["forms"] if form.get("failed")]
    if made == [COMPACT]:
        lines.append(f"without this package: axformer export {directory} --data FILE --output DIR --forms onnx_int8")
    console.print("Load it:", *lines, sep="\n  ", soft_wrap=True)


def _loaded_by(name: str, task: str) -> str:
    library = "sentence-transformers" if task == EMBEDDING else "transformers"
    if name == COMPACT:
        how = library if task == EMBEDDING else "transformers' own classes and pipeline"
        return f"by {how}, after `import axformer.auto`"
    if KINDS[name].files == WEIGHTS:
        return f"by {library} alone"
    return "by ONNX Runtime, without PyTorch and without this package"


def show_deployables(console: Console, report: Mapping[str, Any]) -> None:
    """Print the table of forms and the form to deploy; nothing for a report without forms.

    Args:
        report: the content of a ``report.json``, or its summary.
    """
    found = deployables(report)
    if found is None:
        return
    best = None if found.best is None else found.rows.index(found.best)
    _show_table(console, "What you can deploy", found.table(), ("", "change", "times as fast"), best)
    console.print(found.sentence, soft_wrap=True)


def show_path(console: Console, report: Mapping[str, Any]) -> None:
    """Print what each model of the path is worth in the form in which it would be deployed; nothing where that is unknown."""
    text = deployed_path(report)
    if text is not None:
        _show_table(console, PATH_TITLE, text, text.head)


def _show_table(console: Console, title: str, text: TextTable, whole: Sequence[str], best: int | None = None) -> None:
    """Print a table, as much as there is room for.

    Args:
        whole: the columns that are not broken into lines.
        best: the row to be seen first.
    """
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    shown = [place for place, name in enumerate(text.head) if console.width >= _WIDE or name not in _ONLY_WIDE]
    for name in (text.head[place] for place in shown):
        least = max(map(len, name.split()), default=0)
        table.add_column(name, justify="right" if name else "left", no_wrap=name in whole, min_width=least)
    for row, cells in enumerate(text.rows):
        table.add_row(*(cells[place] for place in shown), style="bold" if row == best else None)
    console.print(table)


def show_beyond(console: Console, report: Mapping[str, Any], source: str) -> None:
    """Print what else the path of a finished run offers, and the command that lists it; nothing if that is nothing.

    Args:
        report: the content of a ``report.json``.
        source: the directory of the result, or the job's id.
    """
    path = [PathPoint.model_validate(one) for one in report.get("path") or []]
    certificate = report.get("certificate")
    told = told_beyond(path, report["config"].get("within_points"), is_certified=certificate is not None)
    if told is not None:
        console.print(f"{told[0]} See: axformer path {source}", soft_wrap=True)
