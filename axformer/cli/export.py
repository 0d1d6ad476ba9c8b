"""``axformer export``: ONNX forms of a finished result."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from axformer.cli.failing import failing
from axformer.cli.made import MadeJsonOption, show_made
from axformer.cli.options import ColumnsOption, DeviceOption, columns_of, forms_of
from axformer.data.columns import Columns

if TYPE_CHECKING:
    from axformer.forms.form import Form, NotMade


def export(
    result: Annotated[Path, typer.Argument(help="Directory of a result, as axformer prune writes it.")],
    data: Annotated[str, typer.Option(help="Data to check every form with: a .jsonl, .json, .csv, .tsv or .parquet.")],
    output: Annotated[Path, typer.Option(help="Directory for the forms; it must not exist, or be empty.")],
    forms: Annotated[str, typer.Option(help="Forms to make, comma-separated: stock, onnx, onnx_int8.")] = "onnx",
    columns: ColumnsOption = None,
    device: DeviceOption = "auto",
    as_json: MadeJsonOption = False,
) -> None:
    """Write more forms of a finished result, without its checkpoint."""
    with failing():
        console = Console(highlight=False, markup=False, stderr=as_json)
        made = _run(console, result, data, output, forms_of(forms), columns_of(columns), device)
    show_made(console, made, output, as_json=as_json)


def _run(
    console: Console, result: Path, data: str, output: Path, names: list[str], columns: Columns, device: str
) -> "Sequence[Form | NotMade]":
    from axformer.artifact import check_target
    from axformer.cli.quiet import silence_libraries
    from axformer.data.columns import DataSource
    from axformer.devices import resolve_device
    from axformer.export import export as write

    silence_libraries()
    check_target(output)
    with console.status("Making and checking the forms"):
        return write(result, DataSource(data, columns), output, forms=names, device=resolve_device(device))
