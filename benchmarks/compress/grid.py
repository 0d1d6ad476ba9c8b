"""The cells: which model, trained with which seed on which set, is compressed in which way.

The order is that of their worth: one seed of every set comes first, then what single parts are worth, then more seeds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from benchmarks.checkpoints import Checkpoint, checkpoint_named
from benchmarks.finetune import BASE

BUDGETS = (0.8, 0.65, 0.5, 0.35)
"""Shares of the encoder's operations."""
CONFIRM = 0.4
"""Share of the validation rows that certify."""
POINTS = (1.0, 2.0)
"""That are asked of the certificate, each from the same models."""
SEEDS = (0, 1, 2)
LARGE_BASE = "mpnet-base"
COMPRESS = "compress"
"""The variant that is the method as it stands."""


@dataclass(frozen=True)
class Variant:
    """One way to smaller models."""

    title: str
    """For people."""
    knobs: Mapping[str, Any] = field(default_factory=dict)
    """Of ``method=compress`` that are not its defaults."""
    masks: Literal["fisher", "rearranged", "tuned"] | None = None
    """How far the published method goes: masks by the diagonal Fisher information, then swaps within each block, then a scalar
    for each unit. None for ``method=compress``."""


VARIANTS: Mapping[str, Variant] = {
    COMPRESS: Variant("compress"),
    "no-refit": Variant("without refit", {"repair": "none"}),
    "contiguous": Variant("contiguous order", {"leaving": "contiguous"}),
    "magnitude": Variant("order of magnitude", {"leaving": "magnitude"}),
    "magnitude-no-refit": Variant("order of magnitude, without refit", {"leaving": "magnitude", "repair": "none"}),
    "fisher": Variant("Fisher masks", masks="fisher"),
    "fisher-rearranged": Variant("Fisher masks, rearranged", masks="rearranged"),
    "fisher-tuned": Variant("Fisher masks, rearranged, scalars tuned", masks="tuned"),
}
"""By the name that cells have."""


@dataclass(frozen=True)
class Cell:
    """One checkpoint that is compressed in one way."""

    checkpoint: Checkpoint
    """With the name that it has here, and its seed."""
    variant: str = COMPRESS

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.checkpoint.name}-{self.variant}"

    @property
    def has_latency(self) -> bool:
        """Whether latency is measured too: for one seed of each set."""
        return self.variant == COMPRESS and self.checkpoint.seed == SEEDS[0]


_SETS = (
    *map(checkpoint_named, ("sst2", "cola", "rte", "stsb")),
    Checkpoint("ag-news", BASE, "classification", "ag-news", ("accuracy",)),
    *map(checkpoint_named, ("squad", "conll2000")),
)
_VARIED = ("sst2", "cola")
_LARGE = ("cola", "sst2")


def cells(only: Sequence[str] = ()) -> list[Cell]:
    """The cells whose name fits one of these patterns (``sst2-*``), or all.

    Raises:
        ValueError: a pattern fits nothing.
    """
    everything = list(_everything())
    for pattern in only:
        if not any(fnmatchcase(cell.name, pattern) for cell in everything):
            raise ValueError(f"no cell is called '{pattern}'; names are like {everything[0].name}")
    return [cell for cell in everything if not only or any(fnmatchcase(cell.name, pattern) for pattern in only)]


def _everything() -> Iterator[Cell]:
    first, *others = SEEDS
    small = [_seeded(one, first) for one in _SETS]
    yield from map(Cell, small)
    for checkpoint in small:
        if checkpoint.data in _VARIED:
            yield from (Cell(checkpoint, variant) for variant in VARIANTS if variant != COMPRESS)
    yield from (Cell(_seeded(replace(checkpoint_named(name), family=LARGE_BASE), first)) for name in _LARGE)
    for seed in others:
        yield from (Cell(_seeded(one, seed)) for one in _SETS)


def _seeded(checkpoint: Checkpoint, seed: int) -> Checkpoint:
    return replace(checkpoint, name=f"{checkpoint.data}-{checkpoint.family}-s{seed}", seed=seed)
