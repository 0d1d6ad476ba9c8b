"""``axformer apply`` and ``axformer export``: write forms of an existing plan, or more forms of a finished result."""

import json
from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from axformer.cli import options
from axformer.cli.characters import Terminal
from axformer.cli.failing import failing
from axformer.cli.inputs import ColumnsOption, DeviceOption, columns_of
from axformer.cli.libraries import ready
from axformer.config import method_of
from axformer.data.columns import DataSource
from axformer.errors import ConfigError
from axformer.forms.kinds import KINDS
from axformer.plan.plan import PlanFile, read_plan_file
from axformer.wire.finetuning import FinetuneSettings, defaults_of, make_settings
from axformer.wire.heads import NewHead, parse_head

if TYPE_CHECKING:
    from axformer.forms.form import Form, NotMade
    from axformer.plan.path import Stop
    from axformer.repair.refit import Refit


_NOT_TRAINED = (
    "note: the model of this plan was trained. What is written here is what the plan leaves of the checkpoint, without the "
    "training; the trained model lies in the result, axformer export makes other forms of it, and --train trains again"
)
_MAKING = "Making and checking the forms"
DataOption = Annotated[
    str, typer.Option(help="Data to check every form with: a .jsonl, .json, .csv, .tsv or .parquet.")
]
OutputOption = Annotated[Path, typer.Option(help="Directory for the forms; it must not exist, or be empty.")]
UsualFormsOption = Annotated[
    str | None,
    typer.Option(
        help="Forms to make, comma-separated: compact, stock, zeroed, onnx, onnx_fp16, onnx_int8. By default compact, and "
        "stock where whole layers are dropped and nothing else."
    ),
]
CalibrateOption = Annotated[
    str | None,
    typer.Option(
        help="What fitted weights are fitted on, where they are anew; --data if none is given. Needs no labels."
    ),
]
OtherWeightsOption = Annotated[
    bool,
    typer.Option("--other-weights", help="Allow a checkpoint with other weights than those the plan was made from."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the created forms as JSON.")]


def apply(
    plan: Annotated[Path, typer.Argument(help="A plan.json, or the directory of a result.")],
    checkpoint: Annotated[
        str, typer.Argument(help="The checkpoint that the pass started from, or hf://organisation/name.")
    ],
    data: DataOption,
    output: OutputOption,
    forms: UsualFormsOption = None,
    columns: ColumnsOption = None,
    upto: Annotated[
        int | None, typer.Option(help="Stop at this trial of the pass's trace.jsonl; 0 is the untouched model.")
    ] = None,
    calibrate: CalibrateOption = None,
    other_weights: OtherWeightsOption = False,
    train: Annotated[
        str | None, typer.Option(help="Data to train what is left on, by default as the method does.")
    ] = None,
    finetune: options.FinetuneOption = None,
    head: options.HeadOption = None,
    pooling: options.PoolingOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Apply a plan to a checkpoint without another pass, and write the forms of the result."""
    console = Terminal(stderr=as_json)
    with failing():
        names, read = None if forms is None else options.forms_of(forms), columns_of(columns)
        file = read_plan_file(plan)
        settings, new_head = _training(train, finetune, head, method_of(file.config))
        computing = ready(device, output)
        from axformer.apply import Lessons, apply_plan
        from axformer.cli.display import showing

        stop, fits = _stored(plan, file, upto)
        if file.trained and train is None:
            console.print(_NOT_TRAINED, soft_wrap=True)
        with showing(console, _MAKING, options.state_of(output)) as around:
            made = apply_plan(
                file,
                checkpoint,
                DataSource(data, read),
                output,
                forms=names,
                stop=stop,
                other_weights=other_weights,
                fits=fits,
                calibrate=None if calibrate is None else DataSource(calibrate, read),
                lessons=None if train is None else Lessons(DataSource(train, read), settings, around),
                head=new_head,
                pooling=pooling,
                device=computing,
            )
        rmtree(options.state_of(output), ignore_errors=True)
    _show(console, made, output, as_json=as_json)


def _stored(plan: Path, file: PlanFile, upto: int | None) -> "tuple[Stop | None, Refit | None]":
    """The point on the path where to stop, and the fitted weights that lie beside the plan."""
    from axformer.plan.path import Stop, read_trace_beside
    from axformer.repair.storage import read_refit

    fits = read_refit(plan if plan.is_dir() else plan.parent) if file.repair is not None else None
    return None if upto is None else Stop(read_trace_beside(plan), upto), fits


def _training(
    train: str | None, finetune: list[str] | None, head: str | None, method: str
) -> tuple[FinetuneSettings | None, NewHead | None]:
    """The settings of a training, those that are not given as the method or a new head has them; and the new head."""
    new = None if head is None else parse_head(head)
    settings = make_settings(options.finetune_of(finetune) or {}, defaults_of(method, new))
    if train is not None:
        return settings, new
    if finetune or new is not None:
        raise ConfigError(
            f"{'--finetune' if finetune else '--head'} is of a training; give --train too, or leave it out"
        )
    return None, None


def export(
    result: Annotated[Path, typer.Argument(help="Directory of a result, as axformer prune writes it.")],
    data: DataOption,
    output: OutputOption,
    forms: Annotated[
        str, typer.Option(help="Forms to make, comma-separated: stock, onnx, onnx_fp16, onnx_int8.")
    ] = "onnx",
    columns: ColumnsOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Write more forms of a finished result, without its checkpoint."""
    console = Terminal(stderr=as_json)
    with failing():
        names, source = options.forms_of(forms), DataSource(data, columns_of(columns))
        computing = ready(device, output)
        from axformer.export import export as write

        with console.status(_MAKING):
            made = write(result, source, output, forms=names, device=computing)
    _show(console, made, output, as_json=as_json)


def _show(console: Console, made: "Sequence[Form | NotMade]", output: Path, *, as_json: bool) -> None:
    """Print one line per form: its place and size, or why it was not made."""
    contents = [_content(form, output) for form in made]
    if as_json:
        print(json.dumps(contents, indent=1))  # noqa: T201 - this is what was asked for
        return
    for form in contents:
        told = f"{form['place']}, {form['bytes'] / 1e6:.1f} MB" if form["made"] else f"not made; {form['reason']}"
        console.print(f"{form['name']}: {told}", soft_wrap=True)


def _content(form: "Form | NotMade", output: Path) -> dict[str, Any]:
    from axformer.forms.form import Form

    if not isinstance(form, Form):
        return {"name": form.name, "made": False, "reason": form.reason}
    kind = KINDS[form.name]
    places = {"directory": str(output / kind.directory), "place": f"{output}/{kind.place}"}
    return {"name": form.name, "made": True, **places, "bytes": form.bytes}
