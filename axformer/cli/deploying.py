"""The first answer of a finished run: what can be deployed, at which metric and speed, and which form to take."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from axformer.cli.display import before_and_after, finding_line
from axformer.cli.failing import EXIT_MISSED
from axformer.forms.kinds import COMPACT, KINDS, WEIGHTS
from axformer.reporting.deploy_table import deployables
from axformer.scores.path_costs import told_beyond
from axformer.wire.jobs import JobRead
from axformer.wire.report import PathPoint


def _longest_word(name: str) -> int:
    return max(map(len, name.split()), default=0)


def show_target(console: Console, report: Mapping[str, Any]) -> None:
    """Print whether the target was reached; nothing for a run without one."""
    target = report.get("target")
    if target is not None:
        console.print(target["sentence"], style="bold green" if target["reached"] else "bold red", soft_wrap=True)


def show_certificate(console: Console, report: Mapping[str, Any]) -> None:
    """Print the certificate, and why it or the held-out figures cannot be relied on; nothing where there is neither."""
    certificate, doubt = report.get("certificate"), report.get("doubt")
    if certificate is not None:
        console.print(certificate["sentence"], soft_wrap=True)
    if doubt is not None:
        console.print(doubt, style="bold red", soft_wrap=True)


def exit_if_missed(report: Mapping[str, Any]) -> None:
    """End the command with an exit code of its own if the target was not reached.

    Raises:
        Exit: it was not.
    """
    target = report.get("target")
    if target is not None and not target["reached"]:
        raise typer.Exit(EXIT_MISSED)


def show_result(console: Console, job: JobRead) -> None:
    """Print the result of a job, as far as it has one: what its report says, or the last line of each report of an analysis."""
    for finding in job.findings or ():
        console.print(Text.assemble((finding.report, "bold"), f": {finding.sentence}"), soft_wrap=True)
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
    lines = [f"{directory / KINDS[name].directory}/: {_loaded_by(name)}" for name in made]
    lines += [f"not published: {form['reason']}" for form in report["forms"] if form.get("failed")]
    if made == [COMPACT]:
        lines.append(f"without this package: axformer export {directory} --data FILE --output DIR --forms onnx_int8")
    console.print("Load it:", *lines, sep="\n  ", soft_wrap=True)


def _loaded_by(name: str) -> str:
    if name == COMPACT:
        return "by transformers' own classes and pipeline, after `import axformer.auto`"
    if KINDS[name].files == WEIGHTS:
        return "by transformers alone"
    return "by ONNX Runtime, without PyTorch and without this package"


def show_deployables(console: Console, report: Mapping[str, Any]) -> None:
    """Print the table of forms and the form to deploy; nothing for a report without forms.

    Args:
        report: the content of a ``report.json``, or its summary.
    """
    found = deployables(report)
    if found is None:
        return
    text, best = found.table(), found.best
    table = Table(title="What you can deploy", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for name in text.head:
        table.add_column(
            name, justify="left" if not name else "right", no_wrap=name in ("", "change"), min_width=_longest_word(name)
        )
    for row, cells in zip(found.rows, text.rows, strict=True):
        table.add_row(*cells, style="bold" if row is best else None)
    console.print(table)
    console.print(found.sentence, soft_wrap=True)


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
