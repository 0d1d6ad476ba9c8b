"""``axformer features``: the lowest layers of a model, some of its dimensions, and a linear classifier on them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from axformer.cli import options
from axformer.cli.analyze import MaxLengthOption
from axformer.cli.characters import Terminal
from axformer.cli.failing import failing
from axformer.cli.libraries import importing, ready

if TYPE_CHECKING:
    from axformer.wire.features import FeaturesFile


def features(
    checkpoint: options.CheckpointArgument,
    data: Annotated[str, typer.Option(help="Labelled rows to measure on, as for prune.")],
    train: Annotated[str, typer.Option(help="Other labelled rows, which the classifier learns from.")],
    output: Annotated[Path, typer.Option(help="Directory for the feature model; it must not exist, or be empty.")],
    rows: Annotated[
        int | None,
        typer.Option(help="Most rows of each data set, drawn at random; 20000 by default.", metavar="N", min=2),
    ] = None,
    onnx: Annotated[bool, typer.Option("--onnx", help="Write the model as ONNX too.")] = False,
    max_length: MaxLengthOption = None,
    columns: options.ColumnsOption = None,
    device: options.DeviceOption = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print dimensions.json; progress goes to standard error.")
    ] = False,
) -> None:
    """Keep the lowest layers and the fewest dimensions that a linear classifier needs, and write them as a model."""
    with failing():
        read = options.columns_of(columns)
        console = Terminal(stderr=as_json)
        with importing():
            from axformer.analysis.advice import Given
            from axformer.analyzing import open_analysis
            from axformer.cli.display import showing
            from axformer.data.columns import DataSource
            from axformer.featuring import make_features

        computing = ready(device, output)
        given = Given(checkpoint, data, train, columns, max_length)
        sources = DataSource(data, read), DataSource(train, read)
        with showing(console, "Loading the checkpoint and the data") as around:
            inputs = open_analysis(given, *sources, None, computing)
            made = make_features(inputs, output, rows=rows, onnx=onnx, surroundings=around)
    if as_json:
        print(json.dumps(made.model_dump(mode="json"), indent=1))  # noqa: T201 - this is what was asked for
    else:
        _tell(console, made, output, onnx=onnx)


def _tell(console: Console, made: "FeaturesFile", output: Path, *, onnx: bool) -> None:
    name = made.metric.replace("_", " ")
    console.print(
        f"{len(made.dimensions):,} dimensions after {made.layers} of {made.whole_layers} layers: {name} {made.value:.4f}, the "
        f"whole model {made.whole_value:.4f}",
        soft_wrap=True,
    )
    console.print(
        f"{made.parameters:,} of {made.whole_parameters:,} parameters, {made.milliseconds.kept:.2f} ms a row, the whole model "
        f"{made.milliseconds.whole:.2f} ms",
        soft_wrap=True,
    )
    more = ", onnx/, config.json" if onnx else ""
    console.print(
        f"Wrote {output}/ (encoder/, classifier.safetensors, dimensions.json{more}, analysis.json, analysis.html)",
        soft_wrap=True,
    )
    console.print("Load it:", soft_wrap=True)
    console.print(f'  axformer.load_features("{output}").predict(["a text"])', soft_wrap=True)
