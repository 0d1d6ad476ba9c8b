"""The cells: a model, trained with a seed on a set, and compressed in one way.

They are in the order of their importance: first one seed of every set, then the variants, then more seeds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from benchmarks.checkpoints import Checkpoint, checkpoint_named
from benchmarks.finetune import BASE
from benchmarks.kept import chosen

BUDGETS = (0.8, 0.65, 0.5, 0.35)
"""Shares of the encoder's operations."""
CONFIRM = 0.4
"""Share of the validation rows that confirm."""
POINTS = (1.0, 2.0)
"""Points of the certificates, all from the same models."""
SEEDS = (0, 1, 2)
LARGE_BASE = "mpnet-base"
COMPRESS = "compress"
"""The standard variant of the method."""


@dataclass(frozen=True)
class Variant:
    """One way to make smaller models."""

    title: str
    """The name for users."""
    knobs: Mapping[str, Any] = field(default_factory=dict)
    """Knobs of ``method=compress`` that differ from the defaults."""
    calibrates_on_all: bool = False
    """Whether all training rows calibrate, and not only some."""
    masks: Literal["fisher", "rearranged", "tuned"] | None = None
    """The last step of the published method: masks by the diagonal Fisher information, then swaps within each block, then a
    scalar for each unit. None for ``method=compress``."""

    @property
    def revision(self) -> int:
        """The version of what makes the models; cells of an earlier one are measured again. In version 2 of optimal brain
        surgeon's order, an error counts by what it does to the predictions; since version 3 of a polish, rows of similar
        length form its batches."""
        if "polish" in self.knobs:
            return 3
        return 2 if self.masks is None and "leaving" not in self.knobs else 1


VARIANTS: Mapping[str, Variant] = {
    COMPRESS: Variant("compress"),
    "polished": Variant("compress, polished for three epochs", {"polish": 3}),
    "all-rows": Variant("compress, calibrated on all training rows", calibrates_on_all=True),
    "no-refit": Variant("without refit", {"repair": "none"}),
    "contiguous": Variant("contiguous order", {"leaving": "contiguous"}),
    "magnitude": Variant("order of magnitude", {"leaving": "magnitude"}),
    "magnitude-no-refit": Variant("order of magnitude, without refit", {"leaving": "magnitude", "repair": "none"}),
    "fisher": Variant("Fisher masks", masks="fisher"),
    "fisher-rearranged": Variant("Fisher masks, rearranged", masks="rearranged"),
    "fisher-tuned": Variant("Fisher masks, rearranged, scalars tuned", masks="tuned"),
}
"""The variants by their names in cells."""


@dataclass(frozen=True)
class Cell:
    """One checkpoint, compressed in one way."""

    checkpoint: Checkpoint
    """The checkpoint, with its name in this benchmark and its seed."""
    variant: str = COMPRESS

    @property
    def name(self) -> str:
        """The name of the cell and of its file."""
        return f"{self.checkpoint.name}-{self.variant}"

    @property
    def has_latency(self) -> bool:
        """Whether latency is measured too, which is done for one seed of each set."""
        return self.variant == COMPRESS and self.checkpoint.seed == SEEDS[0]


_SETS = (
    *map(checkpoint_named, ("sst2", "cola", "rte", "stsb")),
    Checkpoint("ag-news", BASE, "classification", "ag-news", ("accuracy",)),
    *map(checkpoint_named, ("squad", "conll2000")),
)
_VARIED = ("sst2", "cola")
_LARGE = ("cola", "sst2")


def cells(only: Sequence[str] = ()) -> list[Cell]:
    """The cells whose names match one of these patterns (``sst2-*``), or all cells without patterns.

    Raises:
        ValueError: a pattern matches nothing.
    """
    return chosen(list(_everything()), only)


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
