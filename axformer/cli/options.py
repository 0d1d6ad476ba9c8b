"""Options that several commands share: their help texts and parsers."""

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Signature, signature
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any

import typer

from axformer.cli.inputs import ColumnsOption, columns_of
from axformer.config import ABOUT_PRESETS, DEFAULT_PRESET, METHODS, Preset, PublishedConfig, RunConfig, parse_knob
from axformer.config.goals import ABOUT_GOALS, written
from axformer.config.nearest import or_all
from axformer.errors import ConfigError
from axformer.forms.kinds import KINDS
from axformer.wire.heads import FEWEST_LABELS, HEAD_TASKS, parse_head
from axformer.wire.references import tidy
from axformer.wire.run import Run, read_run

CheckpointArgument = Annotated[
    str, typer.Argument(help="Directory of a fine-tuned model, or hf://organisation/name.", metavar="CHECKPOINT")
]


def knob_names(incomplete: str) -> list[tuple[str, str]]:
    """Shell completion of ``--set``: the knobs with this prefix, each with the first line of its reason."""
    configs: list[type[RunConfig]] = [*METHODS.values(), PublishedConfig]
    fields = {name: about for config in configs for name, about in config.model_fields.items()}
    return [
        (f"{name}=", (about.description or "").partition("\n")[0].replace("``", ""))
        for name, about in fields.items()
        if name.startswith(incomplete)
    ]


RequireOption = Annotated[
    str | None,
    typer.Option(
        help="What the advised form must meet, for runs that nobody watches: certified, times>=1.5, points<=1, with commas "
        "between them. The exit code is 4 if it does not.",
        metavar="REQUIREMENTS",
    ),
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
PoolingOption = Annotated[
    str | None,
    typer.Option(help="How a plain encoder's tokens become the vector of a text: mean, cls, max or lasttoken."),
]
FormsOption = Annotated[
    str | None,
    typer.Option(help="Forms of the result, comma-separated: compact, stock, zeroed, onnx, onnx_fp16, onnx_int8."),
]
AcceptPoorOption = Annotated[
    bool,
    typer.Option("--accept-poor-model", help="Go on even if the untouched model is worse than guessing on the data."),
]
ReportJsonOption = Annotated[bool, typer.Option("--json", help="Print report.json; progress goes to standard error.")]
LabelOption = Annotated[list[str] | None, typer.Option(help="A label to find the job by: key=value; may be repeated.")]
WebhookEventOption = Annotated[
    list[str] | None, typer.Option(help="An event to send, by default those that end the job; may be repeated.")
]


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


def state_of(output: Path) -> Path:
    """The directory for the state of trainings, beside the output."""
    whole = output.resolve()  # "." has no name of its own
    return whole.with_name(f".{whole.name}-training")


def beside(checkpoint: str, what: str = "pruned") -> Path:
    """A directory for what is made of a checkpoint or a result, which does not exist yet: beside it, or here for a model of the
    hub."""
    path, on_hub, model = Path(checkpoint), *tidy(checkpoint).partition("hf://")[1:]
    if on_hub:
        path = Path(model.partition("@")[0].rpartition("/")[2])
    elif not path.name or path.name == "..":
        path = path.resolve()
    names = chain([f"{path.name}-{what}"], (f"{path.name}-{what}-{number}" for number in count(2)))
    return next(made for name in names if not (made := path.with_name(name)).exists())


def finetune_of(texts: list[str] | None) -> dict[str, Any] | None:
    """The training settings that are given, each written ``name=value``; None without any."""
    return dict(parse_knob(text) for text in texts) if texts else None


def _said(field: str) -> str:
    """What a run says of its field, as the help of an option."""
    return " ".join((Run.model_fields[field].description or "").replace("``", "").split())


@dataclass(frozen=True)
class RunOptions:
    """The options that describe a run, as they were typed; the fields are options of every command that takes a run."""

    checkpoint: CheckpointArgument
    data: Annotated[
        str | None,
        typer.Option(
            help="Validation data that decides: a .jsonl, .json, .csv, .tsv or .parquet path or URL, or hf://datasets/...; it "
            "may be left out with --unlabelled.",
            show_default=False,
        ),
    ] = None
    unlabelled: Annotated[str | None, typer.Option(help=_said("unlabelled"), show_default=False)] = None
    test: Annotated[str | None, typer.Option(help=_said("test"))] = None
    goal: Annotated[
        str | None,
        typer.Option(
            help="What you want. "
            + "; ".join(
                f"{written(name)}: {about.title[0].lower()}{about.title[1:]}" for name, about in ABOUT_GOALS.items()
            )
            + ". Without it, the preset says.",
            metavar="GOAL",
        ),
    ] = None
    preset: Annotated[
        Preset | None,
        typer.Option(
            help=f"Named set of knobs, {DEFAULT_PRESET.value} by default. "
            + f"{'; '.join(f'{name}: {about}' for name, about in ABOUT_PRESETS.items())}.",
        ),
    ] = None
    method: Annotated[
        str | None,
        typer.Option(
            help="The way to a smaller model, if neither goal nor preset names it: "
            + "; ".join(f"{name}: {kind.about.title}" for name, kind in METHODS.items())
            + ".",
            metavar="METHOD",
            autocompletion=lambda: list(METHODS),
        ),
    ] = None
    within_points: Annotated[
        float | None,
        typer.Option(help="Keep the smallest model certified to have lost less than this many points of its metric."),
    ] = None
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A knob, for example max_length=128; may be repeated. axformer knobs lists and explains them.",
            autocompletion=knob_names,
        ),
    ] = None
    config: Annotated[Path | None, typer.Option(help="Knobs in a .toml or .json file; --set overrides it.")] = None
    columns: ColumnsOption = None
    calibrate: Annotated[str | None, typer.Option(help=_said("calibrate"))] = None
    train: Annotated[str | None, typer.Option(help=_said("train"))] = None
    finetune: FinetuneOption = None
    head: HeadOption = None
    pooling: PoolingOption = None
    forms: FormsOption = None
    at_most: Annotated[float | None, typer.Option(help=_said("at_most"), metavar="POINTS")] = None
    accept_poor_model: AcceptPoorOption = False

    def run(self) -> Run:
        """The run, which is not settled yet.

        Raises:
            ConfigError: an option cannot be read.
        """
        columns = columns_of(self.columns).model_dump(exclude_defaults=True)
        data = {
            "validation": self.data,
            "test": self.test,
            "calibrate": self.calibrate,
            "unlabelled": self.unlabelled,
            "train": self.train,
        }
        given = {part: uri for part, uri in data.items() if uri}
        sources = {part: {"uri": part} | ({"columns": columns} if columns else {}) for part in given}
        knobs = {"method": self.method, "within_points": self.within_points}
        knobs["accept_poor_model"] = self.accept_poor_model or None
        run = read_run(
            {
                "checkpoint": "checkpoint",
                **sources,
                "finetune": finetune_of(self.finetune),
                "head": None if self.head is None else parse_head(self.head),
                "pooling": self.pooling,
                "goal": self.goal,
                "preset": self.preset,
                "config": knobs_of(self.config, self.set_)
                | {name: value for name, value in knobs.items() if value is not None},
                "at_most": self.at_most,
                "forms": None if self.forms is None else forms_of(self.forms),
            }
        )
        return run.located({"checkpoint": self.checkpoint, **given})  # paths may hold bytes that are no text


def takes_run(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command whose first parameter is :class:`RunOptions` take these as options of its own."""
    shared = signature(RunOptions).parameters
    own = list(signature(command).parameters.values())[1:]

    @wraps(command)
    def taking(**given: Any) -> None:
        command(RunOptions(**{name: given.pop(name) for name in shared}), **given)

    # Required ones first, as help lists them.
    together = sorted([*shared.values(), *own], key=lambda one: one.default is not one.empty)
    keywords = [one.replace(kind=one.KEYWORD_ONLY) for one in together]
    taking.__signature__ = Signature(keywords)  # type: ignore[attr-defined]
    taking.__annotations__ = {one.name: one.annotation for one in keywords}
    return taking


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
