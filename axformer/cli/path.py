"""``axformer path``: the models on a path, the one to take for a wish, and an export of any of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich import box
from rich.table import Table

from axformer.cli.failing import EXIT_MISSED, failing
from axformer.cli.options import FormsOption, forms_of
from axformer.cli.remote import (
    HubTokenOption,
    JsonOption,
    hub_token_of,
    notes,
    output,
    print_json,
    result_here,
    service_for,
)
from axformer.cli.words import NOTHING
from axformer.client import Client, PassPath
from axformer.config import config_class
from axformer.errors import InputError
from axformer.plan.elements import label_of
from axformer.plan.result_files import read_result
from axformer.scores.path_costs import Costs, PathModel, costs_of
from axformer.wire.metrics import LOSS
from axformer.wire.report import PathPoint

_KEPT = "→"
_REPORT = "report.json"


def path(
    source: Annotated[str, typer.Argument(help="A job, or the directory of a result.", metavar="JOB|RESULT")],
    within: Annotated[
        float | None,
        typer.Option(min=0, help="Name the fastest model that costs at most so many points of the metric."),
    ] = None,
    speedup: Annotated[
        float | None, typer.Option(min=1, help="Name the best model that is at least so many times as fast.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List every model with its losses, not only those no other beats.")
    ] = False,
    export: Annotated[
        int | None, typer.Option(help="Queue a job that exports the model of this trial; 0 is the untouched model.")
    ] = None,
    forms: FormsOption = "compact",
    hub_token: HubTokenOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show what speed costs along the path of a finished run, and which of its models to take for a wish.

    --within and --speedup name one model; with both, the fastest within the points, and exit code 3 if it is not that fast.
    --export queues a job that writes a model without another pass.
    """
    if export is not None:
        with service_for(source) as (client, source):
            _export(client, source, export, forms_of(forms or "compact"), asked=hub_token, as_json=as_json)
        return
    models = _read(source)
    if not models.data:
        notes().print("There is no path: the job has not succeeded, or is a pass of another.")
    elif within is None and speedup is None:
        if as_json:
            print_json(models)
        else:
            output().print(_table(models.data, every=every))
    else:
        _show_chosen(source, models.data, within, speedup, as_json=as_json)


def _read(source: str) -> PassPath:
    """The path of a local result, or of a job."""
    with failing():
        here = result_here(source)
        if here is not None:
            return _of_result(here / _REPORT)
    with service_for(source) as (client, job):
        return client.path(job)


def _of_result(report: Path) -> PassPath:
    try:
        points = json.loads(read_result(report.parent, report.name)).get("path") or []
        data = [PathPoint.model_validate(point) for point in points]
    except (ValueError, AttributeError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise InputError(f"'{report}' is not the report of a run: {why}") from None
    return PassPath(kept=next((point.seq for point in data if point.kept), None), data=data)


def _show_chosen(
    source: str, path: Sequence[PathPoint], within: float | None, speedup: float | None, *, as_json: bool
) -> None:
    """Print the model to take for a wish, and end with an exit code of its own if no model fulfils it."""
    costs = costs_of(path)[0]
    model = costs.within(within) if within is not None else costs.at_least(speedup or 1.0)
    is_missed = model is None or (speedup is not None and model.times < speedup)
    model = model or costs.best[-1]
    if as_json:
        print_json(model.point)
    else:
        if is_missed:
            limit = "" if within is None else f" within {within:g} {costs.unit}"
            output().print(f"No model on the path is {speedup:g} times as fast{limit}. The closest:", style="bold red")
        output().print(_sentence(costs, model), style="bold", soft_wrap=True)
        output().print(_how_to_get(source, model), soft_wrap=True)
    if is_missed:
        raise typer.Exit(EXIT_MISSED)


def _sentence(costs: Costs, model: PathModel) -> str:
    untouched = costs.models[0]
    size = model.point.parameters / untouched.point.parameters
    return (
        f"Trial {model.point.seq}: {costs.name} {model.change:+.2f} {costs.unit} ({untouched.value:.4f} → {model.value:.4f}), "
        f"about {model.times:.2f} times as fast, {size:.1%} of the parameters."
    )


def _how_to_get(source: str, model: PathModel) -> str:
    seq = model.point.seq
    if model.point.kept:
        return "It is the result itself."
    if Path(source).is_dir():
        report = json.loads((Path(source) / _REPORT).read_text(encoding="utf-8"))
        knobs, has_train = report["config"], report.get("finetune") is not None or "train" in report.get("names", ())
        kind = config_class(knobs)
        is_trained = kind.trains_path(knobs) and has_train
        train = " --train TRAIN" if is_trained and seq else ""
        told = f"axformer apply {source} CHECKPOINT --data DATA --output DIR --upto {seq}{train}"
        is_otherwise, has_new_head = seq and (is_trained or knobs.get("polish")), report.get("head") is not None
        other = kind.applied_otherwise(knobs, has_new_head=has_new_head) if is_otherwise else None
        return f"Write it: {told}" if other is None else f"Write one of the same size, {other}: {told}"
    return f"Export it: axformer path {source} --export {seq}"


def _export(client: Client, job_id: str, seq: int, forms: list[str], *, asked: bool, as_json: bool) -> None:
    source = client.job(job_id)
    token = hub_token_of(asked, [reference["uri"] for reference in source.sources.values()])
    exported = client.export_point(job_id, seq, forms=forms, hub_token=token)
    if as_json:
        print_json(exported)
    else:
        output().print(exported.id, soft_wrap=True)


def _table(path: Sequence[PathPoint], *, every: bool) -> Table:
    costs = costs_of(path)[0]
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("trial", justify="right", no_wrap=True)
    table.add_column("accepted", overflow="fold")
    losses = ("loss", "confirming", "held-out") if every else ()
    for name in (costs.unit, "times", *losses, "size", "encoder"):
        table.add_column(name, justify="right", no_wrap=True)
    shown = costs.models if every else [model for model in costs.models if model.is_best or model.point.kept]
    for model in shown:
        table.add_row(*_row(model, costs.models[0].point, every=every))
    hidden = len(path) - len(shown)
    beaten = f" Left out: {hidden} that another beats; --all lists them." if hidden else ""
    table.caption = (
        f"{_KEPT} the model that the run gave; {costs.unit}: change of {costs.name}; times as fast, estimated from operations; "
        f"size of all parameters, encoder of those in the transformer layers.{beaten}"
    )
    table.caption_justify = "left"
    return table


def _row(model: PathModel, untouched: PathPoint, *, every: bool) -> list[str]:
    point = model.point
    measured = (None if data is None else data[LOSS] for data in (point.confirming, point.test))
    losses = [NOTHING if loss is None else f"{loss:.4f}" for loss in (point.loss, *measured)] if every else []
    return [
        _KEPT if point.kept else "",
        str(point.seq),
        label_of(point.element, "(untouched)"),
        f"{model.change:+.2f}",
        f"{model.times:.2f}",
        *losses,
        f"{point.parameters / untouched.parameters:.1%}",
        _share_left(point.encoder_parameters, untouched.encoder_parameters),
    ]


def _share_left(after: int | None, before: int | None) -> str:
    return NOTHING if after is None or before is None else f"{after / before:.1%}"
