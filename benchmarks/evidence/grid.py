"""The cells of the experiment: which model, with which seed, on which set, under which knobs.

The order is that of their worth, so that whatever time there is gives the most: one seed of everything comes first. Behind the
comparison of arms stand the cells that ask why a pass removes so little, and those that change one of the paper's heuristics.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from axformer.config import Order
from benchmarks.checkpoints import Checkpoint, checkpoint_named
from benchmarks.finetune import BASE
from benchmarks.kept import chosen

SEEDS = (0, 1, 2)
LARGE_BASE = "mpnet-base"


@dataclass(frozen=True)
class Arm:
    """What is asked of a pass."""

    preset: str
    knobs: Mapping[str, Any] = field(default_factory=dict)
    validation_rows: int | None = None
    """That it decides on; null takes all that the set has."""


PAPER = "paper"
COMPARED: Mapping[str, Arm] = {
    PAPER: Arm("paper"),
    "published": Arm("published"),
    "robust": Arm("robust"),
    "confirm": Arm("paper", {"confirm": 0.5}),
    "folds-confirm": Arm("paper", {"safeguard": "folds", "confirm": 0.3}),
    "published-confirm": Arm("published", {"confirm": 0.5}),
}
"""The rule of the paper as it stands, and what may make its gains hold."""
EARLIER: Mapping[str, Arm] = {
    "paired": Arm("paper", {"safeguard": "paired"}),
    "sign_test": Arm("paper", {"safeguard": "sign_test"}),
}
"""Safeguards that an earlier version had. What was measured of them stays; nothing is measured anew."""
COMPRESSION: Mapping[str, Arm] = {
    "rows-100": Arm("paper", validation_rows=100),
    "rows-300": Arm("paper", validation_rows=300),
    "no-majority": Arm("paper", {"majority_fraction": 0.0}),
    "wide-margin": Arm("paper", {"refine_margin": 100.0}),
}
"""What may make a pass remove more: fewer rows to convince, half of the rule, or the parts of every block to try."""
TRADES: Mapping[str, Arm] = {
    name: Arm("paper", {"tolerance": 0.5, "confirm": 0.3, "within_points": points})
    for name, points in (("one-point", 1.0), ("two-points", 2.0), ("five-points", 5.0))
}
"""The smallest model within so many points of the metric."""
HEURISTICS: Mapping[str, Arm] = {
    "random-order": Arm("paper", {"order": "random"}),
    "layers-first": Arm("paper", {"inspect_layers_first": True}),
    "no-hard-attention": Arm("paper", {"attention_top_k": None}),
    "adaptive": Arm("paper", {"coarse_margin": 0.99}),
}
"""The rows of Table V, each the paper's rule without one of its heuristics."""
ORDERS: Mapping[str, Arm] = {
    order: Arm("paper", {"order": order})
    for order in (
        *(Order.TOP_BOTTOM_MIDDLE, Order.MIDDLE_TOP_BOTTOM, Order.MIDDLE_BOTTOM_TOP),
        *(Order.BOTTOM_TOP_MIDDLE, Order.BOTTOM_MIDDLE_TOP),
    )
}
"""The rows of Table VI; the sixth, from top over middle to bottom, is that of ``paper``."""
ADVISED_AGAINST: Mapping[str, Arm] = {order: Arm("paper", {"order": order}) for order in (Order.TOP_MIDDLE_BOTTOM,)}
"""What ``paper`` would be on CoLA if the task were not named: Table VII advises from top over bottom to middle there."""
ARMS = {**COMPARED, **EARLIER, **COMPRESSION, **TRADES, **HEURISTICS, **ORDERS, **ADVISED_AGAINST}
VARIED: Mapping[str, Mapping[str, Arm]] = {"rte": HEURISTICS, "sst2": ORDERS, "cola": ADVISED_AGAINST}
"""On which set each is measured: pairs of sentences for those of Table V, as in the paper, and SST-2 for the orders."""
COMPRESSION_EPOCHS = (3, 10, 1)
"""Of the training of what is pruned: how far a model is over-trained may be what there is to gain."""

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


def compared_cells() -> list[Cell]:
    """Every arm that is compared, on every model, set and seed."""
    return [Cell(checkpoint, arm) for checkpoint in _checkpoints() for arm in COMPARED]


def compression_cells() -> list[Cell]:
    """Why so little is removed: passes over one set, of models that were trained for longer and shorter, and of a larger one.

    The larger model under the paper's rule is among the cells that are compared.
    """
    cola = checkpoint_named("cola")
    trained = (replace(cola, name=f"cola-{epochs}-epochs", epochs=epochs) for epochs in COMPRESSION_EPOCHS)
    large = replace(cola, name=f"cola-{LARGE_BASE}-s{SEEDS[0]}", family=LARGE_BASE, seed=SEEDS[0])
    return [
        *(Cell(checkpoint, arm) for checkpoint in trained for arm in (PAPER, *COMPRESSION)),
        Cell(large, "no-majority"),
    ]


def traded_cells() -> list[Cell]:
    """A model within some points of the metric, for every model, set and seed, and for a model that was trained too long."""
    too_long = replace(checkpoint_named("cola"), name="cola-10-epochs", epochs=10)
    return [Cell(checkpoint, arm) for checkpoint in (*_checkpoints(), too_long) for arm in TRADES]


def varied_cells() -> list[Cell]:
    """The counterparts of Table V and Table VI, on every seed; each is to be seen beside ``paper`` on the same checkpoint."""
    return [
        Cell(checkpoint, arm)
        for checkpoint in _checkpoints()
        if checkpoint.family == BASE
        for arm in VARIED.get(checkpoint.data, ())
    ]


def earlier_cells() -> list[Cell]:
    """What an earlier version could measure: the cells of it that are there are shown, and none is added."""
    return [Cell(checkpoint, arm) for checkpoint in _checkpoints() for arm in EARLIER]


def questions() -> dict[str, list[Cell]]:
    """All cells by what they are asked for."""
    presets = [cell for cell in compared_cells() if not ARMS[cell.arm].knobs]
    guards = [cell for cell in compared_cells() if ARMS[cell.arm].knobs]
    return {
        **_by_model("do the gains of the presets hold?", presets),
        **_by_model("what are single safeguards worth?", guards),
        "why is so little removed?": compression_cells(),
        **_by_model("what do points of the metric buy?", traded_cells()),
        "what are the paper's heuristics worth?": varied_cells(),
    }


def _by_model(question: str, asked: Sequence[Cell]) -> dict[str, list[Cell]]:
    models = (BASE, LARGE_BASE)
    return {f"{question} {model}": [cell for cell in asked if cell.checkpoint.family == model] for model in models}


def cells(arms: Sequence[str] = tuple(ARMS), only: Sequence[str] = ()) -> list[Cell]:
    """The cells of these arms whose name fits one of these patterns (``rte-*``), or all.

    Raises:
        ValueError: an arm is unknown, or a pattern fits nothing.
    """
    unknown = [arm for arm in arms if arm not in ARMS]
    if unknown:
        raise ValueError(f"arm '{unknown[0]}' is unknown; there are {', '.join(ARMS)}")
    everything = [
        cell for cell in (*compared_cells(), *compression_cells(), *traded_cells(), *varied_cells()) if cell.arm in arms
    ]
    return chosen(everything, only)


def _checkpoints() -> Iterator[Checkpoint]:
    for seed in SEEDS:
        for checkpoint in (*_SMALL, *_LARGE):
            yield replace(checkpoint, name=f"{checkpoint.data}-{checkpoint.family}-s{seed}", seed=seed)
