"""``axformer apply``: write the forms of an existing plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from axformer.cli.failing import failing
from axformer.cli.made import MadeJsonOption, show_made
from axformer.cli.options import (
    ColumnsOption,
    DeviceOption,
    FinetuneOption,
    HeadOption,
    columns_of,
    finetune_of,
    forms_of,
    state_of,
)
from axformer.config import method_of
from axformer.data.columns import DataSource
from axformer.errors import ConfigError
from axformer.plan.plan import PlanFile, read_plan_file
from axformer.wire.finetuning import FinetuneSettings, defaults_of, make_settings
from axformer.wire.heads import NewHead, parse_head

if TYPE_CHECKING:
    from axformer.forms.form import Form, NotMade


_NOT_TRAINED = (
    "note: the model of this plan was trained. What is written here is what the plan leaves of the checkpoint, without the "
    "training; the trained model lies in the result, axformer export makes other forms of it, and --train trains again"
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
    train: Annotated[
        str | None, typer.Option(help="Data to train what is left on, by default as the method does.")
    ] = None,
    finetune: FinetuneOption = None,
    head: HeadOption = None,
    device: DeviceOption = "auto",
    as_json: MadeJsonOption = False,
) -> None:
    """Apply a plan to a checkpoint without another pass, and write the forms of the result."""
    with failing():
        names, read = None if forms is None else forms_of(forms), columns_of(columns)
        console = Console(highlight=False, markup=False, stderr=as_json)
        file = read_plan_file(plan)
        settings, new_head = _training(train, finetune, head, method_of(file.config))
        given = _Given(
            checkpoint,
            DataSource(data, read),
            calibrate=None if calibrate is None else DataSource(calibrate, read),
            train=None if train is None else DataSource(train, read),
            settings=settings,
            head=new_head,
        )
        made = _run(console, plan, file, given, output, names, device, upto=upto, other_weights=other_weights)
    show_made(console, made, output, as_json=as_json)


def _training(
    train: str | None, finetune: list[str] | None, head: str | None, method: str
) -> tuple[FinetuneSettings | None, NewHead | None]:
    """The settings of a training, those that are not given as the method or a new head has them; and the new head."""
    new = None if head is None else parse_head(head)
    settings = make_settings(finetune_of(finetune) or {}, defaults_of(method, new))
    if train is not None:
        return settings, new
    if finetune or new is not None:
        raise ConfigError(
            f"{'--finetune' if finetune else '--head'} is of a training; give --train too, or leave it out"
        )
    return None, None


@dataclass(frozen=True)
class _Given:
    """What a plan is applied to, and what is done beside."""

    checkpoint: str
    data: DataSource
    calibrate: DataSource | None
    train: DataSource | None
    settings: FinetuneSettings | None
    head: NewHead | None


def _run(
    console: Console,
    plan: Path,
    file: PlanFile,
    given: _Given,
    output: Path,
    names: list[str] | None,
    device: str,
    *,
    upto: int | None,
    other_weights: bool,
) -> "Sequence[Form | NotMade]":
    from axformer.apply import Lessons, apply_plan
    from axformer.artifact import check_target
    from axformer.cli.display import status_of
    from axformer.cli.quiet import silence_libraries
    from axformer.devices import resolve_device
    from axformer.plan.path import Stop, read_trace_beside
    from axformer.repair.storage import read_refit
    from axformer.surroundings import Surroundings

    silence_libraries()
    fits = read_refit(plan if plan.is_dir() else plan.parent) if file.repair is not None else None
    if file.trained and given.train is None:
        console.print(_NOT_TRAINED, soft_wrap=True)
    stop = None if upto is None else Stop(read_trace_beside(plan), upto)
    check_target(output)
    state = state_of(output)
    with console.status("Making and checking the forms") as status:
        surroundings = Surroundings(state, on_step=lambda step: status.update(status_of(step)))
        made = apply_plan(
            file,
            given.checkpoint,
            given.data,
            output,
            forms=names,
            stop=stop,
            other_weights=other_weights,
            fits=fits,
            calibrate=given.calibrate,
            lessons=None if given.train is None else Lessons(given.train, given.settings, surroundings),
            head=given.head,
            device=resolve_device(device),
        )
    rmtree(state, ignore_errors=True)
    return made
