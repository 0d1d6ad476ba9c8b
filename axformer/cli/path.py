"""``axformer path``: list the models on the path of a job's pass, and export any of them."""

from typing import Annotated

import typer
from rich import box
from rich.table import Table

from axformer.cli.hub_token import HubTokenOption, hub_token_of
from axformer.cli.options import FormsOption, forms_of
from axformer.cli.remote import JobArgument, JsonOption, notes, output, print_json, service
from axformer.cli.words import NOTHING
from axformer.client import Client, PassPath
from axformer.plan.elements import label_of

_LOSS = "loss"
_KEPT = "→"


def path(
    job: JobArgument,
    export: Annotated[
        int | None, typer.Option(help="Queue a job that exports the model of this trial; 0 is the untouched model.")
    ] = None,
    forms: FormsOption = "compact",
    hub_token: HubTokenOption = False,
    as_json: JsonOption = False,
) -> None:
    """List the models on the path of a finished pass, or export one with --export, without another pass."""
    with service() as client:
        if export is None:
            models = client.path(job)
            if as_json:
                print_json(models)
            elif models.data:
                output().print(_table(models))
            else:
                notes().print("There is no path: the job has not succeeded, or is a pass of another.")
        else:
            _export(client, job, export, forms_of(forms), asked=hub_token, as_json=as_json)


def _export(client: Client, job_id: str, seq: int, forms: list[str], *, asked: bool, as_json: bool) -> None:
    source = client.job(job_id)
    references = (source.checkpoint, source.validation, source.test, source.calibrate, source.train)
    token = hub_token_of(asked, [reference["uri"] for reference in references if reference is not None])
    exported = client.export_point(job_id, seq, forms=forms, hub_token=token)
    if as_json:
        print_json(exported)
    else:
        output().print(exported.id, soft_wrap=True)


def _table(path: PassPath) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("trial", justify="right", no_wrap=True)
    table.add_column("accepted", overflow="fold")
    for name in ("loss", "confirming", "held-out", "size", "encoder", "speed", "latency"):
        table.add_column(name, justify="right", no_wrap=True)
    untouched = path.data[0]
    for point in path.data:
        losses = (NOTHING if figures is None else f"{figures[_LOSS]:.4f}" for figures in (point.confirming, point.test))
        size, speed = f"{point.parameters / untouched.parameters:.1%}", f"{point.estimated_speedup:.2f}x"
        encoder = _share_left(point.encoder_parameters, untouched.encoder_parameters)
        latency = NOTHING if point.estimated_latency_ms is None else f"{point.estimated_latency_ms:.2f} ms"
        kept, name = _KEPT if point.kept else "", label_of(point.element, "(untouched)")
        table.add_row(kept, str(point.seq), name, f"{point.loss:.4f}", *losses, size, encoder, speed, latency)
    table.caption = (
        f"{_KEPT} the model that the job gave; size is of all parameters, encoder of those in the transformer layers; "
        "speed and latency are estimated from operations"
    )
    table.caption_justify = "left"
    return table


def _share_left(after: int | None, before: int | None) -> str:
    return NOTHING if after is None or before is None else f"{after / before:.1%}"
