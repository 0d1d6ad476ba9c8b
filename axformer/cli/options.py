"""Options that several commands share: their help texts and parsers."""

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from axformer.config import (
    ABOUT_METHODS,
    ABOUT_PRESETS,
    DEFAULT_PRESET,
    METHODS,
    AnyConfig,
    Preset,
    PublishedConfig,
    make_config,
    parse_knob,
    usual_preset,
)
from axformer.config.goals import ABOUT_GOALS, config_for, parse_goal, written
from axformer.config.nearest import or_all, suggestion
from axformer.data.columns import Columns
from axformer.errors import ConfigError
from axformer.forms.kinds import KINDS
from axformer.repair.settings import FinetuneSettings, defaults_of, make_settings
from axformer.wire.heads import FEWEST_LABELS, HEAD_TASKS, NewHead, parse_head

CheckpointArgument = Annotated[
    str, typer.Argument(help="Directory of a fine-tuned model, or hf://organisation/name.", metavar="CHECKPOINT")
]
DataOption = Annotated[
    str,
    typer.Option(
        help="Validation data that decides: a .jsonl, .json, .csv, .tsv or .parquet path or URL, or hf://datasets/..."
    ),
]
TestOption = Annotated[
    str | None, typer.Option(help="Held-out data, measured before and after, and never used to decide.")
]
GoalOption = Annotated[
    str | None,
    typer.Option(
        help="What you want. "
        + "; ".join(
            f"{written(name)}: {about.title[0].lower()}{about.title[1:]}" for name, about in ABOUT_GOALS.items()
        )
        + ". Without it, the preset says.",
        metavar="GOAL",
    ),
]
PresetOption = Annotated[
    Preset | None,
    typer.Option(
        help=f"Named set of knobs, {DEFAULT_PRESET.value} by default. "
        + f"{'; '.join(f'{name}: {about}' for name, about in ABOUT_PRESETS.items())}.",
    ),
]


MethodOption = Annotated[
    str | None,
    typer.Option(
        help="The way to a smaller model, if neither goal nor preset names it: "
        + "; ".join(f"{name}: {about}" for name, about in ABOUT_METHODS.items())
        + ".",
        metavar="METHOD",
        autocompletion=lambda: list(METHODS),
    ),
]


WithinPointsOption = Annotated[
    float | None,
    typer.Option(help="Keep the smallest model certified to have lost less than this many points of its metric."),
]


def config_from(goal: str | None, preset: Preset | None, knobs: dict[str, Any]) -> AnyConfig:
    """The config of a goal or a preset, with some knobs changed.

    Raises:
        ConfigError: both are given, or one of them or a knob is not right.
    """
    if goal is None:
        return make_config(preset or usual_preset(knobs), knobs)
    if preset is not None:
        raise ConfigError(f"--goal {goal} and --preset {preset.value}: a goal has its own preset; leave one out")
    return config_for(parse_goal(goal), knobs)[1]


def knob_names(incomplete: str) -> list[tuple[str, str]]:
    """Shell completion of ``--set``: the knobs with this prefix, each with the first line of its reason."""
    fields = {
        name: about for config in (*METHODS.values(), PublishedConfig) for name, about in config.model_fields.items()
    }
    return [
        (f"{name}=", (about.description or "").partition("\n")[0].replace("``", ""))
        for name, about in fields.items()
        if name.startswith(incomplete)
    ]


SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A knob, for example max_length=128; may be repeated. axformer knobs lists and explains them.",
        autocompletion=knob_names,
    ),
]
ConfigOption = Annotated[Path | None, typer.Option(help="Knobs in a .toml or .json file; --set overrides it.")]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        help="Names of the columns, for example text=sentence,label=class; several make a list: choices=ending0+ending1."
    ),
]
DeviceOption = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 ...; auto takes a GPU if there is one.")]
CalibrateOption = Annotated[
    str | None,
    typer.Option(
        help="Data that weights are fitted on, with method=compress; it needs no labels. The rows that decide if none is given."
    ),
]
TrainOption = Annotated[
    str | None,
    typer.Option(help="Data to train the finished model on; it needs no labels if only a teacher is asked."),
]
FinetuneOption = Annotated[
    list[str] | None,
    typer.Option(
        help="How to train, for example epochs=2, teacher=true or freeze=lower:4 (docs/training.md); may be repeated."
    ),
]
HeadOption = Annotated[
    str | None,
    typer.Option(
        help="A new head for a base model, with the names of its classes: classification=no,yes or regression; needs --train.",
        metavar="TASK=LABELS",
        autocompletion=lambda: [f"{task}=" if task in FEWEST_LABELS else task for task in HEAD_TASKS],
    ),
]
FormsOption = Annotated[
    str, typer.Option(help="Forms of the result, comma-separated: compact, stock, zeroed, onnx, onnx_int8.")
]

ReportJsonOption = Annotated[bool, typer.Option("--json", help="Print report.json; progress goes to standard error.")]
LabelOption = Annotated[list[str] | None, typer.Option(help="A label to find the job by: key=value; may be repeated.")]
WebhookEventOption = Annotated[
    list[str] | None, typer.Option(help="An event to send, by default those that end the job; may be repeated.")
]
AcceptPoorModelOption = Annotated[
    bool,
    typer.Option("--accept-poor-model", help="Go on even if the untouched model is worse than guessing on the data."),
]


def columns_of(text: str | None) -> Columns:
    """Parse comma-separated ``ours=theirs`` pairs.

    Raises:
        ConfigError: it is not that, or names a column twice.
    """
    if text is None:
        return Columns()
    names: dict[str, str] = {}
    for part in text.split(","):
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        if not equals or ours not in Columns.model_fields or not theirs:
            known = ", ".join(Columns.model_fields)
            near = suggestion(ours, Columns.model_fields) if equals and ours not in Columns.model_fields else ""
            raise ConfigError(f"--columns '{part}' is not name=column with a name of {known}{near and f'; {near}'}")
        if ours in names:
            raise ConfigError(
                f"--columns names two columns for {ours}, '{names[ours]}' and '{theirs}'; give one (the second of two texts is "
                "text_pair, and the columns of a list are joined by +)"
            )
        names[ours] = theirs
    return Columns(**names)


def forms_of(text: str) -> list[str]:
    """Parse comma-separated names of forms.

    Raises:
        ConfigError: a form does not exist.
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in KINDS:
            raise ConfigError(f"--forms '{name}' is not a form; {or_all(name, KINDS)}")
    return names


def labels_of(texts: list[str] | None) -> dict[str, str]:
    """Parse labels written as ``key=value``.

    Raises:
        ConfigError: a label has another form.
    """
    labels = {}
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ConfigError(f"--label '{text}' is not key=value")
        labels[key] = value
    return labels


def knobs_of(file: Path | None, set_: list[str] | None) -> dict[str, Any]:
    """The knobs of a file, overridden by those on the command line.

    Raises:
        ConfigError: the file cannot be read or holds no knobs, or an option is not ``name=value``.
    """
    return _in_file(file) | dict(parse_knob(text) for text in set_ or [])


def flags_of(*, method: str | None, within_points: float | None, accept_poor_model: bool) -> dict[str, Any]:
    """The knobs that have options of their own, as far as they are given."""
    given = {"method": method, "within_points": within_points, "accept_poor_model": accept_poor_model or None}
    return {name: value for name, value in given.items() if value is not None}


def state_of(output: Path) -> Path:
    """The directory for the state of trainings, beside the output."""
    whole = output.resolve()  # "." has no name of its own
    return whole.with_name(f".{whole.name}-training")


def training_of(
    train: str | None, texts: list[str] | None, head: str | None, method: str
) -> tuple[FinetuneSettings | None, NewHead | None]:
    """The training settings, if there is training data, those that are not given as the method or a new head has them; and the
    new head of a base model, if one is asked for.

    Raises:
        ConfigError: there are settings or a head but no training data, a setting is unknown, or a value is out of range.
    """
    new = None if head is None else parse_head(head)
    if train is None and texts:
        raise ConfigError("--finetune says how to train, and --train on what; give --train too")
    if train is None and new is not None:
        raise ConfigError(f"--head {new} puts an untrained head on the model; give --train too")
    settings = make_settings(dict(parse_knob(text) for text in texts or []), defaults_of(method, new))
    return None if train is None else settings, new


def _in_file(path: Path | None) -> dict[str, Any]:
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
