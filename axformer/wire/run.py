"""A run: the one description of what is done to a model.

The command, Python, the client, ``POST /v1/jobs``, the confined process and the result (``run.json``) all carry it.
:meth:`Run.settled` resolves goal and preset, fills in defaults, and checks every rule between the fields, once.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError

from axformer.config import Preset, RunConfig, make_config, parse_knob, usual_preset
from axformer.config.goals import GoalName, config_for, parse_goal
from axformer.config.nearest import or_all
from axformer.errors import ConfigError, reason_of
from axformer.wire.base import Schema, storable
from axformer.wire.finetuning import FinetuneSettings, check_head, completed, defaults_of, refused_setting
from axformer.wire.heads import NewHead
from axformer.wire.references import CheckpointRef, DataRef, Reference

GOAL_LENGTH = 40
DATA = {
    "validation": "Validation data",
    "test": "Held-out data",
    "calibrate": "Calibration data",
    "unlabelled": "Unlabelled rows",
    "train": "Training data",
}
"""The fields of a run that hold data, and what people call it."""
WITHOUT_LABELS = ("calibrate", "unlabelled")
"""Those whose labels nobody looks at."""
IN_MEMORY = "memory"
"""The reference to what was given as a Python object."""
FormName = Literal["stock", "compact", "zeroed", "onnx", "onnx_fp16", "onnx_int8"]
"""The names of :data:`axformer.forms.kinds.KINDS`."""
FORMS: tuple[FormName, ...] = FormName.__args__  # type: ignore[attr-defined]


def usual_forms() -> list[FormName]:
    """The default forms of a result: the compact one, and ONNX int8, which is often faster by more than pruning brings."""
    return ["compact", "onnx_int8"]


class Run(Schema):
    """What to prune, with which data, and how; as a person writes it."""

    checkpoint: CheckpointRef
    validation: DataRef | None = None
    """The data that decides what is removed. It may be left out with ``unlabelled`` and a method that looks at no label."""
    test: DataRef | None = None
    """Held-out data: measured before and after, never used to decide."""
    calibrate: DataRef | None = None
    """Data that weights are fitted on, and the order of leaving is measured on, with a method that does so; without it the rows
    that decide. It needs no labels, and those that it has are not looked at: what the model was trained on will do."""
    unlabelled: DataRef | None = None
    """Rows from where the model will work, without labels. They confirm, but for the part that calibrates where ``calibrate``
    is not given, and only those that are answered otherwise than before need a label afterwards (``axformer label``). Labels
    that they have are not looked at."""
    train: DataRef | None = None
    """Data to train the finished model on; without it there is no training. It needs no labels if only a teacher is asked."""
    finetune: FinetuneSettings | None = None
    """Training settings; only with ``train``. The report also has the figures before training."""
    head: NewHead | None = None
    """The new head that a base model gets, whose checkpoint has none or that of a language model. It needs ``train``: the model
    is trained with it first, and that is the untouched model of the run, which lies in the result as ``untouched/``."""
    pooling: Literal["mean", "cls", "max", "lasttoken"] | None = None
    """How the token vectors of a plain encoder become the vector of a text. It is then made smaller as an embedder, which needs
    no labels. A directory of sentence-transformers says so itself."""
    goal: str | None = Field(default=None, max_length=GOAL_LENGTH)
    """What you want, in the place of a preset: ``no-worse``, ``within-points=1``, ``same-answers=98``, ``speedup=2``,
    ``fewer-layers=1`` or ``as-paper``."""
    preset: Preset | None = None
    """The preset that the knobs start from; without goal and preset ``robust``, or the one that belongs to the method of
    ``config``."""
    config: Annotated[dict[str, Any], AfterValidator(storable)] = Field(default_factory=dict)
    """Knobs that differ from goal or preset; ``GET /v1/knobs`` lists them."""
    at_most: float | None = Field(default=None, gt=0.0, le=100.0)
    """The points (hundredths) of the first metric that a form may cost to be advised. By default those of ``within_points``,
    else 5 where a size or a speed is asked for, and 1 elsewhere."""
    forms: list[FormName] = Field(default_factory=usual_forms, min_length=1)
    """Forms of the result; by default the compact one, which is always included, and ONNX int8. A form that cannot be made is
    listed with its reason in the report, and the run still succeeds."""

    def settled(self) -> "SettledRun":
        """The run with goal, preset and defaults resolved, and every rule between its fields checked.

        Raises:
            ConfigError: something does not fit; its ``field`` names the field.
        """
        preset, config = self._chosen()
        if self.head is not None and self.pooling is not None:
            raise ConfigError("an encoder gets a new head or is pooled, not both; leave one out", "pooling")
        if self.calibrate is not None:
            with _field("calibrate"):
                config = config.calibrated(is_trained=self.train is not None)
        self._check_labels(config)
        return SettledRun(
            run=Run(**{name: getattr(self, name) for name in self.model_fields_set & Run.model_fields.keys()}),
            preset=preset,
            config=config.model_dump(mode="json"),
            finetune=self._training(config),
            forms=[name for name in FORMS if name in self.forms or name == "compact"],
        )

    def _chosen(self) -> tuple[Preset, RunConfig]:
        """The preset and the knobs that goal, preset and config ask for."""
        if self.goal is None:
            with _field("config"):
                preset = self.preset or usual_preset(self.config)
                return preset, make_config(preset, self.config)
        with _field("goal"):
            if self.preset is not None:
                raise ConfigError(
                    f"a goal has its own preset; leave goal '{self.goal}' or preset '{self.preset.value}' out"
                )
            goal = parse_goal(self.goal)
        with _field("config"):
            return config_for(goal, self.config)

    def _check_labels(self, config: RunConfig) -> None:
        """Check that there are labels where they are looked at, and none where answers alone count."""
        is_of_answers = self.goal is not None and parse_goal(self.goal).name is GoalName.SAME_ANSWERS
        if is_of_answers and (self.unlabelled is None or self.validation is not None):
            raise ConfigError(
                f"goal '{self.goal}' counts answers that stay, on rows without labels; give them as unlabelled and leave "
                "validation data out, or take within-points for rows with labels",
                "goal",
            )
        if self.validation is not None:
            return
        if self.unlabelled is None:
            raise ConfigError(
                "a run needs validation data, or unlabelled rows for a method without labels", "validation"
            )
        if config.about.uses_labels:
            raise ConfigError(
                f"method={config.method} decides by labels; give validation data too, or a goal for rows without labels: "
                "within-points, same-answers, speedup or operations",
                "validation",
            )
        if self.head is not None:
            raise ConfigError("a new head is trained on labels; give validation data too", "validation")

    def _training(self, config: RunConfig) -> FinetuneSettings | None:
        """Every setting of the training; None without one."""
        has_train = self.train is not None
        config.check_training(has_train=has_train)
        with _field("finetune"):
            settings = completed(self.finetune, defaults_of(config.method, self.head))
        if self.head is not None:
            check_head(self.head, settings, has_train=has_train)
        if not has_train and self.finetune is not None:
            raise ConfigError(
                "finetune says how to train, and train on what; give train too, or leave it out", "finetune"
            )
        return settings if has_train else None

    def data(self) -> dict[str, DataRef]:
        """The data that is given, by field."""
        given = {part: getattr(self, part) for part in DATA}
        return {part: reference for part, reference in given.items() if reference is not None}

    def sources(self) -> dict[str, Reference]:
        """The checkpoint and the data that is given, by field."""
        return {"checkpoint": self.checkpoint, **self.data()}

    def located(self, uris: Mapping[str, str]) -> Self:
        """The same run with its checkpoint and data elsewhere, by field."""
        sources = self.sources()
        return self.model_copy(
            update={part: sources[part].model_copy(update={"uri": uri}) for part, uri in uris.items()}
        )

    def given(self) -> dict[str, Any]:
        """The run as JSON, as it was written: no field that was not given."""
        return self.model_dump(mode="json", exclude_unset=True)


class SettledRun(Schema):
    """A run with everything that it means: no default is open any more."""

    run: Run
    """As it was written."""
    preset: Preset
    config: dict[str, Any]
    """Every knob with its value."""
    finetune: FinetuneSettings | None
    """Every setting of the training; null without one."""
    forms: list[FormName]

    def located(self, uris: Mapping[str, str]) -> Self:
        """The same run with its checkpoint and data elsewhere, by field."""
        return self.model_copy(update={"run": self.run.located(uris)})

    def stored(self) -> dict[str, Any]:
        """The settled run as JSON, with the run as it was written."""
        return self.model_dump(mode="json") | {"run": self.run.given()}

    @property
    def knobs(self) -> RunConfig:
        """The knobs.

        Raises:
            ConfigError: they are of an earlier version and mean nothing any more.
        """
        return make_config(self.preset, self.config)


@contextmanager
def _field(name: str) -> Iterator[None]:
    """Let an error say which field of the run is wrong."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(str(error), name) from None


def read_run(fields: Mapping[str, Any]) -> Run:
    """Make a run from its fields; those that are None are left out.

    Raises:
        ConfigError: a field is unknown or cannot be read; its ``field`` names it.
    """
    try:
        return Run.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        field, *rest = map(str, first["loc"])
        if first["type"] == "extra_forbidden" and not rest:
            raise ConfigError(f"{field} is no part of a run; {or_all(field, Run.model_fields)}", field) from None
        if field == "finetune" and rest:
            raise ConfigError(refused_setting(first), field) from None
        raise ConfigError(f"{'.'.join((field, *rest))}: {reason_of(first)}", field) from None


def command(run: Run, output: str = "DIR") -> str:
    """The command that repeats a run."""
    words = ["axformer", "prune", run.checkpoint.uri]
    for part, reference in run.data().items():
        words += ["--data" if part == "validation" else f"--{part}", reference.uri]
    first = run.validation or run.unlabelled
    columns = {} if first is None or first.columns is None else first.columns.model_dump(exclude_defaults=True)
    if columns:
        words += ["--columns", ",".join(f"{ours}={theirs}" for ours, theirs in columns.items())]
    if run.head is not None:
        words += ["--head", str(run.head)]
    if run.pooling is not None:
        words += ["--pooling", run.pooling]
    if run.goal is not None:
        words += ["--goal", run.goal]
    if run.preset is not None:
        words += ["--preset", run.preset.value]
    for name, value in run.config.items():
        words += ["--set", f"{name}={_word(value)}"]
    settings = {} if run.finetune is None else run.finetune.model_dump(mode="json", exclude_unset=True)
    for name, value in settings.items():
        words += ["--finetune", f"{name}={_word(value)}"]
    if run.at_most is not None:
        words += ["--at-most", f"{run.at_most:g}"]
    if "forms" in run.model_fields_set:
        words += ["--forms", ",".join(run.forms)]
    return shlex.join([*words, "--output", output]).encode(errors="replace").decode()


def _word(value: Any) -> str:
    """A value as :func:`axformer.config.parse_knob` reads it."""
    return value if isinstance(value, str) and parse_knob(f"x={value}")[1] == value else json.dumps(value)
