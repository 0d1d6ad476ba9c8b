"""``axformer plot``: the pictures of a pass as files."""

import json
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from axformer.cli.failing import failing
from axformer.cli.remote import JsonOption, output, result_here, service_for
from axformer.drawing.chart import loss_chart
from axformer.plan.path import read_trace_beside

LOSS = "loss.svg"
_OF_RESULTS = ("plan.svg", "path.svg")
"""Pictures that a result contains."""


def plot(
    source: Annotated[str, typer.Argument(help="Directory of a result, or a job.", metavar="RESULT|JOB")],
    to: Annotated[Path, typer.Option("--output", help="Directory for the pictures; it is made.")] = Path(),
    as_json: JsonOption = False,
) -> None:
    """Write the pictures of a pass as SVG: loss.svg, trial by trial, and once it has ended plan.svg, what is left, and
    path.svg, what speed costs."""
    with failing():
        here = result_here(source)
        written = _of_job(source, to) if here is None else _of_directory(here, to)
    if as_json:
        sys.stdout.write(json.dumps([str(path) for path in written], indent=1) + "\n")
    else:
        for path in written:
            output().print(str(path), soft_wrap=True)


def _of_directory(result: Path, to: Path) -> list[Path]:
    written = [_write(to / LOSS, loss_chart(read_trace_beside(result)))]
    for name in _OF_RESULTS:
        made = result / name
        if made.is_file():
            if made.resolve() != (to / name).resolve():
                shutil.copyfile(made, to / name)
            written.append(to / name)
    return written


def _of_job(job_id: str, to: Path) -> list[Path]:
    with service_for(job_id) as (client, job_id):
        written = [_write(to / LOSS, loss_chart(list(client.trace(job_id))))]
        there = {one.name for one in client.artifacts(job_id)}
        if names := [name for name in _OF_RESULTS if name in there]:
            written += client.download(job_id, to, names)
    return written


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
