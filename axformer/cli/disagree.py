"""``axformer disagree``: find the rows on which two models answer differently, the only ones that need labels."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from axformer.cli.failing import failing
from axformer.cli.options import ColumnsOption, DeviceOption, columns_of
from axformer.data.columns import Columns
from axformer.errors import InputError

if TYPE_CHECKING:
    from axformer.data.rows import Rows

MODEL = "A checkpoint, or the directory of a result."


def disagree(
    before: Annotated[str, typer.Argument(help=MODEL)],
    after: Annotated[str, typer.Argument(help=f"{MODEL[:-1]}, made from the first.")],
    data: Annotated[str, typer.Option(help="Rows, which need no labels.")],
    output: Annotated[Path, typer.Option(help="The .jsonl for the rows on which both differ; it must not exist.")],
    columns: ColumnsOption = None,
    device: DeviceOption = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; what moves goes to standard error.")] = False,
) -> None:
    """Write the rows on which two models answer differently: only these need labels for axformer certify."""
    console = Console(highlight=False, markup=False, stderr=as_json)
    with failing():
        if output.exists():
            raise InputError(f"output '{output}' exists; choose another file or remove it")
        rows, every = _find(console, before, after, data, columns_of(columns), device)
        output.write_text(_lines(rows), encoding="utf-8")
    if as_json:
        print(json.dumps({"disagree": len(rows), "rows": every}))  # noqa: T201 - this is what was asked for
        return
    console.print(
        f"{len(rows):,} of {every:,} rows need a label; then: axformer certify {before} {after} --data {output} "
        f"--rows {every} --within-points 1",
        soft_wrap=True,
    )


def _find(console: Console, before: str, after: str, data: str, columns: Columns, device: str) -> "tuple[Rows, int]":
    from axformer.cli.quiet import silence_libraries
    from axformer.data.columns import DataSource
    from axformer.devices import resolve_device
    from axformer.two_models import disagreements

    silence_libraries()
    with console.status("Asking both models"):
        return disagreements(before, after, DataSource(data, columns), resolve_device(device))


def _lines(rows: "Rows") -> str:
    """The rows as JSON, one per line."""
    records = (dict(zip(rows.table, values, strict=True)) for values in zip(*rows.table.values(), strict=True))
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
