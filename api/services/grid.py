"""The jobs of a grid: each checkpoint of each set with each seed and each setting."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from api.errors import FieldError, InvalidInputError
from api.schemas.groups import GroupCreate, GroupSet, GroupSetting
from api.schemas.jobs import JobCreate
from api.services.posting import HUB_SCHEME


@dataclass(frozen=True)
class Cell:
    """A job to post."""

    body: JobCreate
    place: Mapping[str, Any]
    """``set``, ``checkpoint``, ``setting`` and ``seed``."""
    pointers: Mapping[str, str]
    """Where the parts of the job's body stand in the grid's."""


def cells(grid: GroupCreate) -> Iterator[Cell]:
    """Every job of the grid, the settings of a checkpoint one after the other, so that comparisons are there early."""
    seeds: Sequence[int | None] = grid.seeds or [None]
    for at_set, one in enumerate(grid.sets):
        checkpoints = range(len(one.checkpoints))
        for at_checkpoint, seed, (at_setting, setting) in product(checkpoints, seeds, enumerate(grid.settings)):
            pointers = {
                "#/checkpoint": f"#/sets/{at_set}/checkpoints/{at_checkpoint}",
                "#/validation": f"#/sets/{at_set}/validation",
                "#/test": f"#/sets/{at_set}/test",
                "#/config": f"#/settings/{at_setting}/config",
            }
            place = {"set": one.name, "checkpoint": at_checkpoint, "setting": setting.name, "seed": seed}
            yield Cell(_job(grid, one, at_checkpoint, setting, seed), place, pointers)


def said_of_grid(error: InvalidInputError, cell: Cell) -> InvalidInputError:
    """What is wrong with a job's body, as what is wrong with the grid's."""

    def moved(one: FieldError) -> FieldError:
        for mine, theirs in cell.pointers.items():
            if one.pointer is not None and one.pointer.startswith(mine):
                return replace(one, pointer=theirs + one.pointer.removeprefix(mine))
        return one

    return replace(error, errors=[moved(one) for one in error.errors])


def _job(grid: GroupCreate, one: GroupSet, at_checkpoint: int, setting: GroupSetting, seed: int | None) -> JobCreate:
    checkpoint = one.checkpoints[at_checkpoint]
    run = f"{one.name} {at_checkpoint}" + ("" if seed is None else f", seed {seed}")
    sources = (checkpoint, one.validation, one.test)
    reads_hub = any(source is not None and source.uri.startswith(HUB_SCHEME) for source in sources)
    return JobCreate(
        name=f"{grid.name}: {run}, {setting.name}",
        checkpoint=checkpoint,
        validation=one.validation,
        test=one.test,
        preset=setting.preset,
        config=setting.config | ({} if seed is None else {"seed": seed}),
        priority=grid.priority,
        device=grid.device,
        forms=grid.forms,
        labels=grid.labels,
        hub_token=grid.hub_token if reads_hub else None,
    )
