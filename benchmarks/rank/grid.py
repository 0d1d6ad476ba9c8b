"""The cells: a checkpoint, fine-tuned with a seed on a set, and one way to smaller models.

They are in the order of their importance: first all ways with one seed, then the curves of head importance, then what a pass
inspects first, then more seeds, and last the curves of the larger model.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.checkpoints import Checkpoint, checkpoint_named
from benchmarks.finetune import BASE
from benchmarks.kept import chosen

SEEDS = (0, 1, 2)
SETS = ("rte", "stsb", "sst2")
CURVE_SETS = ("stsb", "sst2")
LARGE_BASE = "mpnet-base"
_CHOICE = {"confirm": 0.4, "within_points": 1.0}
"""How the certified model is chosen, the same for all ways."""
_PASS = {"confirm": 0.4}


@dataclass(frozen=True)
class Way:
    """One way to smaller models."""

    title: str
    """The name for users."""
    knobs: Mapping[str, Any]
    preset: str = "paper"
    trains: bool = False
    """Whether the set's training rows are given."""


WAYS: Mapping[str, Way] = {
    "l1": Way("L1", {"method": "rank", "score": "l1", **_CHOICE}),
    "magnitude": Way("magnitude", {"method": "rank", "score": "magnitude", **_CHOICE}),
    "taylor": Way("Taylor", {"method": "rank", "score": "taylor", **_CHOICE}),
    "taylor-trained": Way(
        "Taylor, trained after each step",
        {"method": "rank", "score": "taylor", "finetune_each": 1, **_CHOICE},
        trains=True,
    ),
    "pass": Way("the pass (`robust`)", _PASS, preset="robust"),
    "compress": Way("compression", {"method": "compress", **_CHOICE}),
}
"""The counterparts of Table IV of the AxFormer paper, by their names in cells."""
HEADS_GONE = tuple(tenths / 10 for tenths in range(1, 10))
"""Shares of the heads that have left after each step of a curve."""
CURVES: Mapping[str, Way] = {
    f"heads-{norm}": Way(
        norm,
        {
            "method": "rank",
            "units": "heads",
            "normalisation": norm,
            "step": HEADS_GONE[0],
            "until": HEADS_GONE[-1],
            "reestimate": False,
            "confirm": 0.0,
            "within_points": None,
        },
    )
    for norm in ("none", "l1", "l2")
}
"""The curves of head importance by normalisation, Figure 1 of *Why Can You Lay Off Heads?*."""
ORDERS: Mapping[str, Way] = {
    "order-advised": Way("as the paper advises for the task (Table VII)", _PASS, preset="robust"),
    "order-importance": Way("least important block first", {"order": "importance", **_PASS}, preset="robust"),
    "groups-ranked": Way(
        "as advised, neurons in groups of similar importance", {"neuron_groups": "ranked", **_PASS}, "robust"
    ),
}
"""What a pass inspects first."""


@dataclass(frozen=True)
class Cell:
    """One checkpoint, one way."""

    checkpoint: Checkpoint
    way: str

    @property
    def name(self) -> str:
        """The name of the cell and of its file."""
        return f"{self.checkpoint.name}-{self.way}"

    @property
    def how(self) -> Way:
        """Its way."""
        return {**WAYS, **CURVES, **ORDERS}[self.way]


def cells(only: Sequence[str] = ()) -> list[Cell]:
    """The cells whose names match one of these patterns (``stsb-*-taylor``), or all cells without patterns.

    Raises:
        ValueError: a pattern matches nothing.
    """
    return chosen(list(_everything()), only)


def _everything() -> Iterator[Cell]:
    first, *others = SEEDS
    for way in WAYS:
        yield from (Cell(_seeded(name, first), way) for name in SETS)
    for way in CURVES:
        yield from (Cell(_seeded(name, first), way) for name in CURVE_SETS)
    for way in ORDERS:
        yield from (Cell(_seeded(name, first), way) for name in SETS)
    for seed in others:
        for way in WAYS:
            yield from (Cell(_seeded(name, seed), way) for name in SETS)
    for seed in others:
        for way in CURVES:
            yield from (Cell(_seeded(name, seed), way) for name in CURVE_SETS)
    for way in CURVES:
        yield from (Cell(_seeded(name, first, LARGE_BASE), way) for name in CURVE_SETS)


def _seeded(name: str, seed: int, family: str = BASE) -> Checkpoint:
    checkpoint = replace(checkpoint_named(name), family=family, seed=seed)
    return replace(checkpoint, name=f"{checkpoint.data}-{family}-s{seed}")
