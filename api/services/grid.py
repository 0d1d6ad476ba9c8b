"""The jobs of a grid: each checkpoint of each set with each seed and each setting."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from api.errors import FieldError, InvalidInputError
from axformer.config.goals import config_of_wish
from axformer.errors import ConfigError
from axformer.methods.outline import outline_of
from axformer.wire.groups import GroupCreate, GroupSet, GroupSetting
from axformer.wire.jobs import JobCreate
from store.references import HUB_PREFIX


@dataclass(frozen=True)
class Cell:
    """A job to post."""

    body: JobCreate
    place: Mapping[str, Any]
    """``set``, ``checkpoint``, ``setting`` and ``seed``."""
    pointers: Mapping[str, str]
    """The places of the job's parts in the grid's body."""


def cells(grid: GroupCreate) -> Iterator[Cell]:
    """Every job of the grid, with the settings of a checkpoint in sequence, so that comparisons are available early."""
    seeds: Sequence[int | None] = grid.seeds or [None]
    for at_set, set_ in enumerate(grid.sets):
        checkpoints = range(len(set_.checkpoints))
        for at_checkpoint, seed, (at_setting, setting) in product(checkpoints, seeds, enumerate(grid.settings)):
            pointers = {
                "#/checkpoint": f"#/sets/{at_set}/checkpoints/{at_checkpoint}",
                "#/validation": f"#/sets/{at_set}/validation",
                "#/test": f"#/sets/{at_set}/test",
                "#/calibrate": f"#/sets/{at_set}/calibrate",
                "#/train": f"#/sets/{at_set}/train",
                "#/head": f"#/sets/{at_set}/head",
                "#/finetune": f"#/settings/{at_setting}/finetune",
                "#/config": f"#/settings/{at_setting}/config",
            }
            cell = {"set": set_.name, "checkpoint": at_checkpoint, "setting": setting.name, "seed": seed}
            yield Cell(_job(grid, set_, at_checkpoint, setting, seed), cell, pointers)


def said_of_grid(error: InvalidInputError, cell: Cell) -> InvalidInputError:
    """Turn the errors of one job's body into errors of the grid's body."""

    def moved(field_error: FieldError) -> FieldError:
        for in_job, in_grid in cell.pointers.items():
            if field_error.pointer is not None and field_error.pointer.startswith(in_job):
                return replace(field_error, pointer=in_grid + field_error.pointer.removeprefix(in_job))
        return field_error

    return replace(error, errors=[moved(field_error) for field_error in error.errors])


def _job(grid: GroupCreate, set_: GroupSet, at_checkpoint: int, setting: GroupSetting, seed: int | None) -> JobCreate:
    checkpoint = set_.checkpoints[at_checkpoint]
    run = f"{set_.name} {at_checkpoint}" + ("" if seed is None else f", seed {seed}")
    calibrate = set_.calibrate if _calibrates(setting) or not any(map(_calibrates, grid.settings)) else None
    trains = set_.head is not None or _trains(setting) or not any(map(_trains, grid.settings))
    train = set_.train if trains else None
    sources = (checkpoint, set_.validation, set_.test, calibrate, train)
    reads_hub = any(source is not None and source.uri.startswith(HUB_PREFIX) for source in sources)
    return JobCreate(
        name=f"{grid.name}: {run}, {setting.name}",
        checkpoint=checkpoint,
        validation=set_.validation,
        test=set_.test,
        calibrate=calibrate,
        train=train,
        finetune=None if train is None else setting.finetune,
        head=set_.head,
        **({"preset": setting.chosen_preset} if setting.goal is None else {"goal": setting.goal}),
        config=setting.config | ({} if seed is None else {"seed": seed}),
        priority=grid.priority,
        device=grid.device,
        forms=grid.forms,
        labels=grid.labels,
        hub_token=grid.hub_token if reads_hub else None,
    )


def _trains(setting: GroupSetting) -> bool:
    """Whether training data goes into the setting's jobs; also where its knobs cannot be used."""
    try:
        config = config_of_wish(setting.goal, setting.chosen_preset, setting.config)[1]
    except ConfigError:
        return True
    return setting.finetune is not None or outline_of(config).trains_each(config)


def _calibrates(setting: GroupSetting) -> bool:
    """Whether data that calibrates goes into the setting's jobs; also where its knobs cannot be used, for which the job itself
    is refused."""
    try:
        return config_of_wish(setting.goal, setting.chosen_preset, setting.config)[1].why_not_calibrated is None
    except ConfigError:
        return True
