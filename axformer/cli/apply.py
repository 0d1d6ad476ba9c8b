"""``axformer apply``: write the forms of an existing plan."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from axformer.cli.failing import failing
from axformer.cli.made import MadeJsonOption, show_made
from axformer.cli.options import ColumnsOption, DeviceOption, columns_of, forms_of
from axformer.data.source import DataSource
from axformer.plan.plan import read_plan_file

if TYPE_CHECKING:
    from axformer.forms.form import Form, NotMade


_NOT_TRAINED = (
    "note: the model of this plan was trained. What is written here is what the plan leaves of the checkpoint, without the "
    "training; the trained model lies in the result, and axformer export makes other forms of it"
)


def apply(
    plan: Annotated[Path, typer.Argument(help="A plan.json, or the directory of a result.")],
    checkpoint: Annotated[
        str, typer.Argument(help="The checkpoint that the pass started from, or hf://organisation/name.")
    ],
    data: Annotated[str, typer.Option(help="Data to check every form with: a .jsonl, .json, .csv, .tsv or .parquet.")],
    output: Annotated[Path, typer.Option(help="Directory for the forms; it must not exist, or be empty.")],
    forms: Annotated[
        str | None,
        typer.Option(
            help="Forms to make, comma-separated: compact, stock, zeroed, onnx, onnx_int8. By default compact, and stock where "
            "whole layers are dropped and nothing else."
        ),
    ] = None,
    columns: ColumnsOption = None,
    upto: Annotated[
        int | None,
        typer.Option(help="Stop at this trial of the pass's trace.jsonl; 0 is the untouched model."),
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(
            help="What fitted weights are fitted on, where they are anew; --data if none is given. Needs no labels."
        ),
    ] = None,
    other_weights: Annotated[
        bool,
        typer.Option(
            "--other-weights", help="Allow a checkpoint with other weights than those the plan was made from."
        ),
    ] = False,
    device: DeviceOption = "auto",
    as_json: MadeJsonOption = False,
) -> None:
    """Apply a plan to a checkpoint without another pass, and write the forms of the result."""
    with failing():
        names, read = None if forms is None else forms_of(forms), columns_of(columns)
        console = Console(highlight=False, stderr=as_json)
        sources = DataSource(data, read), None if calibrate is None else DataSource(calibrate, read)
        made = _run(console, plan, checkpoint, sources, output, names, device, upto=upto, other_weights=other_weights)
    show_made(console, made, output, as_json=as_json)


def _run(
    console: Console,
    plan: Path,
    checkpoint: str,
    sources: tuple[DataSource, DataSource | None],
    output: Path,
    names: list[str] | None,
    device: str,
    *,
    upto: int | None,
    other_weights: bool,
) -> "Sequence[Form | NotMade]":
    from axformer.apply import apply_plan
    from axformer.artifact import check_target
    from axformer.cli.quiet import silence_libraries
    from axformer.devices import resolve_device
    from axformer.plan.path import Stop, read_trace_beside
    from axformer.repair.storage import read_refit

    silence_libraries()
    file = read_plan_file(plan)
    fits = read_refit(plan if plan.is_dir() else plan.parent) if file.repair is not None else None
    if file.trained:
        console.print(_NOT_TRAINED, soft_wrap=True)
    stop = None if upto is None else Stop(read_trace_beside(plan), upto)
    check_target(output)
    with console.status("Making and checking the forms"):
        return apply_plan(
            file,
            checkpoint,
            sources[0],
            output,
            forms=names,
            stop=stop,
            other_weights=other_weights,
            fits=fits,
            calibrate=sources[1],
            device=resolve_device(device),
        )
