"""``axformer prune``: run a pass over a checkpoint and write the smaller model."""

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from axformer.cli.display import closing_table, display_for
from axformer.cli.failing import failing
from axformer.cli.options import columns_of, forms_of
from axformer.config import PassConfig, Preset, make_config, parse_knob
from axformer.data.columns import Columns
from axformer.errors import ConfigError
from axformer.finetune_settings import FinetuneSettings, make_settings

if TYPE_CHECKING:
    from axformer.data.dataset import DataSource


def prune(
    checkpoint: Annotated[str, typer.Argument(help="Directory of a fine-tuned model, or hf://organisation/name.")],
    data: Annotated[
        str,
        typer.Option(help="Validation data that decides: a .jsonl, .csv or .parquet path or URL, or hf://datasets/..."),
    ],
    output: Annotated[Path, typer.Option(help="Directory for the result; it must not exist, or be empty.")],
    test: Annotated[str | None, typer.Option(help="Held-out data, measured before and after; never decides.")] = None,
    preset: Annotated[Preset, typer.Option(help="Named set of knobs.")] = Preset.PAPER,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A knob, for example refine_margin=1.2; may be repeated.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Knobs in a .toml or .json file; --set comes after it.")] = None,
    columns: Annotated[
        str | None, typer.Option(help="Names of the columns, for example text=sentence,label=class.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 ...; auto takes a GPU where there is one.")] = "auto",
    train: Annotated[str | None, typer.Option(help="Data to train the finished model on; trains nothing else.")] = None,
    finetune: Annotated[
        list[str] | None,
        typer.Option(help="How to train, for example epochs=2 (learning_rate, batch_size, seed); may be repeated."),
    ] = None,
    forms: Annotated[
        str, typer.Option(help="Forms of the result, with commas between: compact, zeroed, onnx, onnx_int8.")
    ] = "compact",
    shards: Annotated[
        int, typer.Option(help="Processes that share the validation samples: one for each GPU, say.", metavar="N")
    ] = 1,
) -> None:
    """Remove what hinders a fine-tuned model on its task, and write the smaller, checked model."""
    with failing():
        knobs = _knobs_of(config) | dict(parse_knob(text) for text in set_ or [])
        names, made = columns_of(columns), forms_of(forms)
        lessons = _lessons(train, finetune, names)
        _run(checkpoint, data, output, test, make_config(preset, knobs), names, device, shards, made, *lessons)


def _run(
    checkpoint: str,
    data: str,
    output: Path,
    test: str | None,
    config: PassConfig,
    columns: Columns,
    device: str,
    shards: int,
    forms: list[str],
    train: "DataSource | None",
    finetune: FinetuneSettings | None,
) -> None:
    from axformer.artifact import check_target
    from axformer.cli.quiet import silence_libraries
    from axformer.data.dataset import DataSource
    from axformer.devices import resolve_device
    from axformer.run import PruningRun

    console = Console(highlight=False)
    silence_libraries()
    check_target(output)
    held_out = None if test is None else DataSource(test, columns)
    with console.status("Loading the checkpoint and the data"):
        source, on = DataSource(data, columns), resolve_device(device)
        run = PruningRun.open(
            *(checkpoint, source),
            test=held_out,
            config=config,
            device=on,
            shards=shards,
            train=train,
            finetune=finetune,
        )
    for note in run.notes:
        console.print(f"note: {note}")
    with display_for(console, run.dimensions, config) as display:
        for trial in run.trials():
            display.show(trial)
        display.end()
    if run.closing_note is not None:
        console.print(f"note: {run.closing_note}")
    if train is not None:
        with console.status("Training the model"):
            run.finetune()
    with console.status("Cutting, measuring and checking the model"):
        report = run.publish(output, forms)
    console.print(closing_table(report))
    for form in report["forms"]:
        if not form["made"]:
            console.print(f"note: no form '{form['name']}': {form['reason']}", soft_wrap=True)
    directories = [f"{form['directory']}/" for form in report["forms"] if form["made"]]
    written = ", ".join(
        [*directories, "plan.json", "trace.jsonl", "report.json", "report.html", "README.md", "plan.svg"]
    )
    console.print(f"Wrote {output}/ ({written})", soft_wrap=True)


def _lessons(
    train: str | None, finetune: list[str] | None, columns: Columns
) -> "tuple[DataSource | None, FinetuneSettings | None]":
    from axformer.data.dataset import DataSource

    if train is None and finetune:
        raise ConfigError("--finetune says how to train, and --train on what; give --train too")
    settings = make_settings(dict(parse_knob(text) for text in finetune or []))
    return (None, None) if train is None else (DataSource(train, columns), settings)


def _knobs_of(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
        knobs = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError) as error:
        raise ConfigError(f"config file '{path}' cannot be read as .toml or .json: {error}") from None
    if not isinstance(knobs, dict):
        raise ConfigError(f"config file '{path}' holds no knobs; write an object such as {{\"refine_margin\": 1.2}}")
    return knobs
