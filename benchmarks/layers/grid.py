"""The cells: a checkpoint, fine-tuned with a seed on a set, whose layers are dropped by one strategy and trained in one way.

They are in the order of their importance: first dropping from the top on every set, without training, with it, and with a
teacher; then all strategies with a short training and the best of them with a full one, then more seeds, then the larger model.
Trainings multiply in bfloat16, for time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from axformer.config.layers import Strategy
from benchmarks.checkpoints import Checkpoint, checkpoint_named
from benchmarks.finetune import BASE
from benchmarks.kept import chosen

DROPPED = {BASE: (1, 2, 3), "mpnet-base": (2, 4, 6)}
"""How many layers are dropped, by model."""
SEEDS = (0, 1, 2)
TRAININGS: Mapping[str, Mapping[str, Any] | None] = {
    "untrained": None,
    "plain": {"bf16": True, "teacher": False},
    "teacher": {"bf16": True, "teacher": True},
    "short": {"bf16": True, "teacher": False},
}
"""The settings of a training that differ from those of ``method=layers``, by name; None where nothing is trained."""
SHORT_ROWS = 2000
"""Training rows of ``short``, by which strategies are compared: 27 trainings on each set."""
STRATEGIES = tuple(one for one in Strategy if one is not Strategy.EXPLICIT)
COMPARED_ON = ("cola", "stsb", "sst2")
"""The sets that strategies are compared on."""
FROM_THE_TOP = ("untrained", "plain", "teacher")
RIVAL = Strategy.EVEN_ALTERNATE
"""The strategy that did best at half of the layers with the short training, so that it is trained fully too."""


@dataclass(frozen=True)
class Cell:
    """One checkpoint, one strategy, one training."""

    checkpoint: Checkpoint
    strategy: Strategy
    training: str

    @property
    def name(self) -> str:
        """The name of the cell and of its file."""
        return f"{self.checkpoint.name}-{self.strategy.value}-{self.training}"


_SETS = (
    *map(checkpoint_named, ("cola", "stsb", "sst2")),
    Checkpoint("ag-news", BASE, "classification", "ag-news", ("accuracy",)),
    checkpoint_named("squad"),
)


def cells(only: Sequence[str] = ()) -> list[Cell]:
    """The cells whose names match one of these patterns (``cola-*-top-*``), or all cells without patterns.

    Raises:
        ValueError: a pattern matches nothing.
    """
    return chosen(list(_everything()), only)


def _everything() -> Iterator[Cell]:
    first, *others = SEEDS
    small = [_seeded(one, first) for one in _SETS]
    for training in FROM_THE_TOP:
        yield from (Cell(one, Strategy.TOP, training) for one in small)
    compared = [one for one in small if one.data in COMPARED_ON]
    yield from (Cell(one, strategy, "short") for one in compared for strategy in STRATEGIES)
    yield from (Cell(one, RIVAL, "plain") for one in compared)
    for seed in others:
        for training in ("plain", "teacher"):
            yield from (Cell(_seeded(one, seed), Strategy.TOP, training) for one in _SETS)
    large = _seeded(replace(checkpoint_named("sst2"), family="mpnet-base"), first)
    yield Cell(large, Strategy.TOP, "plain")


def _seeded(checkpoint: Checkpoint, seed: int) -> Checkpoint:
    return replace(checkpoint, name=f"{checkpoint.data}-{checkpoint.family}-s{seed}", seed=seed)
