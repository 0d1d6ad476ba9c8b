"""The cells of the experiment: which model, with which seed, on which set, under which knobs.

The order is that of their worth, so that whatever time there is gives the most: one seed of everything comes first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from benchmarks.checkpoints import Checkpoint, checkpoint_named
from benchmarks.finetune import BASE

SEEDS = (0, 1, 2)
LARGE_BASE = "mpnet-base"


@dataclass(frozen=True)
class Arm:
    """The knobs of a pass."""

    preset: str
    knobs: Mapping[str, Any] = field(default_factory=dict)


ARMS: Mapping[str, Arm] = {
    "paper": Arm("paper"),
    "published": Arm("published"),
    "robust": Arm("robust"),
    "confirm": Arm("paper", {"confirm": 0.5}),
    "folds-confirm": Arm("paper", {"safeguard": "folds", "confirm": 0.3}),
    "paired": Arm("paper", {"safeguard": "paired"}),
    "sign_test": Arm("paper", {"safeguard": "sign_test"}),
    "published-confirm": Arm("published", {"confirm": 0.5}),
}
"""What is compared: the rule of the paper as it stands, and what may make its gains hold."""

_SMALL = (
    *map(checkpoint_named, ("rte", "cola", "sst2", "stsb", "sms")),
    Checkpoint("ag-news", BASE, "classification", "ag-news", ("accuracy",)),
    *map(checkpoint_named, ("ud-upos", "squad")),
)
_LARGE = tuple(replace(checkpoint_named(name), family=LARGE_BASE) for name in ("rte", "cola"))


@dataclass(frozen=True)
class Cell:
    """One pass."""

    checkpoint: Checkpoint
    """With the name that it has here, and its seed."""
    arm: str

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.checkpoint.name}-{self.arm}"


def cells(arms: Sequence[str] = tuple(ARMS), only: Sequence[str] = ()) -> list[Cell]:
    """The cells of these arms whose name fits one of these patterns (``rte-*``), or all.

    Raises:
        ValueError: an arm is unknown, or a pattern fits nothing.
    """
    unknown = [arm for arm in arms if arm not in ARMS]
    if unknown:
        raise ValueError(f"arm '{unknown[0]}' is unknown; there are {', '.join(ARMS)}")
    everything = [Cell(checkpoint, arm) for checkpoint in _checkpoints() for arm in arms]
    for pattern in only:
        if not any(fnmatchcase(cell.name, pattern) for cell in everything):
            raise ValueError(f"no cell is called '{pattern}'; names are like {everything[0].name}")
    return [cell for cell in everything if not only or any(fnmatchcase(cell.name, pattern) for pattern in only)]


def _checkpoints() -> Iterator[Checkpoint]:
    for seed in SEEDS:
        for checkpoint in (*_SMALL, *_LARGE):
            yield replace(checkpoint, name=f"{checkpoint.data}-{checkpoint.family}-s{seed}", seed=seed)
