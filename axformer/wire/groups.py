"""Groups: a grid of checkpoints, data and settings posted at once, and the table of its results."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from axformer.config import DEFAULT_PRESET, Preset, check_setting_name, usual_preset
from axformer.config.common import LARGEST_INTEGER
from axformer.config.goals import parse_goal
from axformer.errors import ConfigError
from axformer.wire.base import LABEL_COUNT, LabelKey, LabelValue, Schema, storable
from axformer.wire.devices import Device
from axformer.wire.finetuning import FinetuneSettings
from axformer.wire.heads import NewHead
from axformer.wire.jobs import GOAL_LENGTH, PRIORITY_MOST, FormName, HubToken, usual_forms
from axformer.wire.references import CheckpointRef, DataRef
from axformer.wire.spread import Spread
from axformer.wire.states import StateWord

CELLS_MOST = 200
"""Most jobs of a group: they are stored together, each in some milliseconds."""
_SIDE_MOST = 50
"""Most entries of one side of the grid."""

GroupName = Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""The group's name; together with the names of a cell it forms a job's name."""
SideName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,31}$")]
"""Name of a set or a setting in the table."""


class GroupSet(Schema):
    """Data, and the checkpoints that were fine-tuned for them."""

    name: SideName
    checkpoints: list[CheckpointRef] = Field(min_length=1, max_length=_SIDE_MOST)
    """Runs of one kind, for example fine-tuned with several seeds: the table shows their mean and spread."""
    validation: DataRef
    """The data that decides what is removed."""
    test: DataRef | None = None
    """Held-out data: measured before and after, never used to decide."""
    calibrate: DataRef | None = None
    """Data without labels that weights are fitted on, for the settings whose method fits any; the others do without it."""
    train: DataRef | None = None
    """Data that models are trained on: in the settings whose method trains each model, and in those with ``finetune``; if there
    are none of either, or the set has a ``head``, in all."""
    head: NewHead | None = None
    """The new head that base models get, as of a job. It needs ``train``."""


class GroupSetting(Schema):
    """A goal or a preset, and knobs."""

    name: SideName
    goal: str | None = Field(default=None, max_length=GOAL_LENGTH)
    """What is wanted, in the place of a preset, as of a job."""
    preset: Preset = DEFAULT_PRESET
    config: Annotated[dict[str, Any], AfterValidator(storable)] = Field(default_factory=dict)
    """Knobs that differ from the preset."""
    finetune: FinetuneSettings | None = None
    """How models are trained, as of a job; ``{}`` for the usual settings."""

    @property
    def chosen_preset(self) -> Preset:
        """The preset: as given, else the usual one of the method that the knobs name."""
        return self.preset if "preset" in self.model_fields_set else usual_preset(self.config)

    @model_validator(mode="after")
    def _is_what_it_is_called(self) -> Self:
        if self.goal is not None and "preset" in self.model_fields_set:
            raise ValueError(f"setting '{self.name}': a goal has its own preset; leave the goal or the preset out")
        try:
            check_setting_name(self.name, self.chosen_preset if self.goal is None else parse_goal(self.goal).preset)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self


class GroupCreate(Schema):
    """A grid: each checkpoint of each set is pruned with each setting and each seed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "does confirm hold?",
                    "sets": [
                        {
                            "name": "reviews",
                            "checkpoints": ["hf://acme/reviews-s0", "hf://acme/reviews-s1"],
                            "validation": "s3://acme-data/reviews/dev.jsonl",
                            "test": "s3://acme-data/reviews/test.jsonl",
                        }
                    ],
                    "settings": [{"name": "paper", "preset": "paper"}, {"name": "confirm", "config": {"confirm": 0.5}}],
                    "seeds": [0, 1],
                    "labels": {"project": "reviews"},
                }
            ]
        }
    )

    name: GroupName
    """For people; need not be unique."""
    sets: list[GroupSet] = Field(min_length=1, max_length=_SIDE_MOST)
    settings: list[GroupSetting] = Field(min_length=1, max_length=_SIDE_MOST)
    seeds: list[Annotated[int, Field(strict=True, ge=0, le=LARGEST_INTEGER)]] = Field(
        default_factory=list, max_length=_SIDE_MOST
    )
    """Values of the knob ``seed``, which draws the parts of safeguards; without them each setting has its own."""
    priority: int = Field(default=0, strict=True, ge=-PRIORITY_MOST, le=PRIORITY_MOST)
    """Priority of all jobs."""
    device: Device = Device.ANY
    forms: list[FormName] = Field(default_factory=usual_forms, min_length=1)
    """Forms of each result; by default only the compact one."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, max_length=LABEL_COUNT)
    hub_token: HubToken | None = None
    """A hub token for all jobs that read from the hub."""

    @model_validator(mode="after")
    def _is_a_grid(self) -> Self:
        for what, names in (
            ("sets", [data_set.name for data_set in self.sets]),
            ("settings", [setting.name for setting in self.settings]),
        ):
            if len(set(names)) < len(names):
                raise ValueError(f"{what} have the same name twice, so the table could not tell them apart")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError("seeds hold one twice")
        for setting in self.settings:
            if self.seeds and "seed" in setting.config:
                raise ValueError(f"settings '{setting.name}' has a seed of its own; leave it or the seeds out")
        if all(one.train is None for one in self.sets) and any(one.finetune is not None for one in self.settings):
            raise ValueError(
                "settings say how to train, and no set has training data; give sets train, or leave finetune out"
            )
        cells = sum(len(data_set.checkpoints) for data_set in self.sets) * len(self.settings) * max(len(self.seeds), 1)
        if cells > CELLS_MOST:
            raise ValueError(f"makes {cells} jobs, and a group may have {CELLS_MOST}; post several groups")
        return self


class CellRead(Schema):
    """One job of a group, and its place in the grid."""

    job: str
    set: str
    checkpoint: int
    """Place in the set's ``checkpoints``, from 0."""
    setting: str
    seed: int | None
    """Null where the group names no seeds."""
    state: StateWord
    url: str


class GroupRow(Schema):
    """The results of one setting on one set, over checkpoints and seeds. A change is after minus before."""

    set: str
    setting: str
    preset: str
    config: dict[str, Any]
    """Knobs of the setting that differ from the preset."""
    jobs: int
    succeeded: int
    """Succeeded jobs, which the figures summarize."""
    changes: dict[str, dict[str, Spread]]
    """Changes by data (``validation``, and ``confirming`` and ``test`` if present) and by figure (``loss``, metrics)."""
    removed: Spread | None
    """Share of the parameters that was removed."""
    encoder_removed: Spread | None
    """Share of the encoder's parameters that was removed. Null if all reports are of earlier versions."""
    operations: Spread | None
    """Factor by which operations shrank, counted from shapes."""
    latency: Spread | None
    """Measured speedup of a forward pass."""
    latency_by_pruning: Spread | None
    """Measured speedup against the untouched model in the compact model's class, which computes the last layer at one position.
    Null if the head reads all positions, and in reports of earlier versions."""
    verdicts: dict[str, int]
    """Number of findings by verdict: ``gain``, ``no_reliable_gain``, ``within_limit``, ``at_a_cost``, ``loss``,
    ``not_measured``."""
    missed: int = 0
    """Succeeded jobs that did not reach the size or the speed that they were asked for."""


class GroupLinks(Schema):
    """Related addresses."""

    self: str
    cancel: str
    retry: str


class GroupRead(Schema):
    """The present state of a group."""

    id: str
    name: str
    has_ended: bool
    """Whether all its jobs have ended."""
    counts: dict[StateWord, int]
    """Number of jobs in each state that occurs."""
    rows: list[GroupRow]
    """The table so far, sets and settings in the order in which they were posted."""
    cells: list[CellRead]
    created_at: datetime
    links: GroupLinks
