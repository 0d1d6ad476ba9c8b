"""``axformer bench``: compare the forms of a finished result on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from axformer.cli.characters import Terminal
from axformer.cli.failing import failing
from axformer.cli.inputs import ColumnsOption, DeviceOption, columns_of
from axformer.cli.libraries import ready
from axformer.data.columns import DataSource
from axformer.reporting.rendering import number
from axformer.wire.metrics import in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axformer.reporting.bench import BenchReport
    from axformer.wire.report import FormReport, SpeedCell


def bench(
    result: Annotated[Path, typer.Argument(help="Directory of a result, as axformer prune writes it.")],
    checkpoint: Annotated[
        str | None, typer.Option(help="The checkpoint before the pass, to measure along with the forms.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Rows with labels: adds losses, metrics, and the speed at their own lengths."),
    ] = None,
    columns: ColumnsOption = None,
    device: DeviceOption = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Compare all forms of a result: speed, loading, memory and answers."""
    with failing():
        source, computing = None if data is None else DataSource(data, columns_of(columns)), ready(device)
        from axformer.reporting.bench import bench as measure
        from axformer.reporting.speed import THOROUGH

        with Terminal(stderr=True).status("Measuring"):
            report = measure(result, checkpoint, source, computing, THOROUGH)
    if as_json:
        print(report.model_dump_json(indent=1))  # noqa: T201 - this is what was asked for
        return
    console = Terminal()
    console.print(_summary(report))
    console.print(_speed(report))
    machine = report.environment
    console.print(
        f"{machine['device']}, {machine['cores']} cores, threads of PyTorch: {machine['threads']}", soft_wrap=True
    )


def _summary(report: "BenchReport") -> Table:
    forms = _columns(report)
    table = _table("What the forms are worth", forms)
    table.add_row("weight files, MB", *(number(form.bytes, ".1f", 1e-6) for form in forms))
    table.add_row("loads in, s", *(number(form.load_seconds, ".2f") for form in forms))
    table.add_row("memory at most, MB", *(number(form.peak_bytes, ".0f", 1e-6) for form in forms))
    table.add_row("of it before loading, MB", *(number(form.idle_bytes, ".0f", 1e-6) for form in forms))
    for name in report.forms[0].validation or {}:
        figures = [(form.validation or {}).get(name) for form in forms]
        table.add_row(in_words(name), *(number(figure, ".4f") for figure in figures))
    if report.data is not None:
        table.add_row("logits differ by", *(number(form.max_logit_difference, ".1e") for form in forms))
    return table


def _speed(report: "BenchReport") -> Table:
    timed = [form for form in _columns(report) if form.speed]
    table = _table("Milliseconds of a batch: median, 95 % below; inputs a second", timed)
    for cells in zip(*(form.speed for form in timed), strict=True):
        length = "own lengths" if cells[0].length is None else f"{cells[0].length} tokens"
        table.add_row(f"{cells[0].batch} × {length}", *map(_cell, cells))
    return table


def _table(title: str, forms: "Sequence[FormReport]") -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("", no_wrap=True)
    for form in forms:
        table.add_column(form.name, justify="right")
    return table


def _columns(report: "BenchReport") -> "list[FormReport]":
    return report.forms if report.base is None else [report.base, *report.forms]


def _cell(cell: "SpeedCell") -> str:
    return f"{cell.p50_ms:.2f}, {cell.p95_ms:.2f}; {cell.inputs_per_second:,.0f}"
