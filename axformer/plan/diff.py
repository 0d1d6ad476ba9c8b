"""Differences between two plans of one model: what only one of them removes, layer by layer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from axformer.errors import PlanError
from axformer.plan.elements import ranges_of
from axformer.plan.plan import LayerPlan, Plan, kept_neurons


@dataclass(frozen=True)
class PlanDifference:
    """A part of a layer that two plans treat differently."""

    layer: int
    part: str
    """``layer``, ``attention``, ``heads``, ``ffn``, ``neurons`` or ``hard attention``."""
    first: str
    """What the first plan keeps of it that the second does not."""
    second: str
    """What the second keeps that the first does not."""


def differences(first: Plan, second: Plan) -> list[PlanDifference]:
    """All differences, bottom layer first; empty if the plans leave the same model.

    Raises:
        PlanError: the plans have different numbers of layers, so they belong to different models.
    """
    if len(first.layers) != len(second.layers):
        raise PlanError(
            f"the plans have {len(first.layers)} and {len(second.layers)} layers; only plans of one model can be compared"
        )
    pairs = enumerate(zip(first.layers, second.layers, strict=True))
    return [
        difference
        for index, (first_layer, second_layer) in pairs
        for difference in _of_layer(index, first_layer, second_layer)
    ]


def _of_layer(index: int, first: LayerPlan, second: LayerPlan) -> Iterator[PlanDifference]:
    if first.dropped != second.dropped:
        yield PlanDifference(index, "layer", *("dropped" if plan.dropped else "kept" for plan in (first, second)))
        return
    if first.attention != second.attention:
        yield PlanDifference(index, "attention", *("kept" if plan.attention else "removed" for plan in (first, second)))
    if first.heads != second.heads:
        yield PlanDifference(index, "heads", *_each_alone(first.heads, second.heads))
    if first.ffn != second.ffn:
        yield PlanDifference(index, "ffn", *("kept" if plan.ffn else "removed" for plan in (first, second)))
    if first.neurons != second.neurons:
        yield PlanDifference(index, "neurons", *_each_alone(kept_neurons(first), kept_neurons(second)))
    if first.hard_attention != second.hard_attention:
        kept = (plan.hard_attention for plan in (first, second))
        yield PlanDifference(index, "hard attention", *("soft" if top_k is None else f"K = {top_k}" for top_k in kept))


def _each_alone(first: Sequence[int], second: Sequence[int]) -> tuple[str, str]:
    return _ranges(set(first) - set(second)), _ranges(set(second) - set(first))


def _ranges(numbers: set[int]) -> str:
    """Ascending numbers as ranges, both ends named: ``0-3, 7``."""
    ranges = ranges_of(sorted(numbers))
    return ", ".join(str(low) if stop == low + 1 else f"{low}-{stop - 1}" for low, stop in ranges)
