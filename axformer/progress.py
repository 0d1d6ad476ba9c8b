"""How far a pass is, computed from its trace alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from axformer.config import PassConfig
from axformer.elements import (
    Dimensions,
    Element,
    ElementKind,
    attention,
    ffn,
    halves_of,
    heads_of,
    neuron_groups_of,
    parse,
)
from axformer.ordering import inspection_order
from axformer.trial import Trial, Verdict


@dataclass(frozen=True)
class Progress:
    """Trials done and known to come. Blocks still to be tried may add their parts, so ``known`` can grow."""

    done: int
    known: int
    seconds: float
    seconds_left: float | None
    """Known trials left times the mean seconds of a trial so far; null until one is done."""


def parts_of(element: Element, dimensions: Dimensions, config: PassConfig) -> list[Element]:
    """What is tried inside an element that was kept but is worth refining, in order."""
    match element.kind:
        case ElementKind.LAYER:
            return [ffn(element.layer), attention(element.layer)]
        case ElementKind.ATTENTION:
            return heads_of(element.layer, dimensions)
        case ElementKind.FFN:
            return neuron_groups_of(element.layer, dimensions, config.group_size(dimensions.intermediate_size))
        case ElementKind.NEURONS if config.neuron_search == "bisect":
            return halves_of(element)
        case _:
            return []


def progress_of(trials: Sequence[Trial], dimensions: Dimensions, config: PassConfig) -> Progress:
    """How far a pass with this trace is."""
    first = 1 + (dimensions.layers if config.hard_attention else 0) + len(inspection_order(dimensions, config))
    refined = (parse(trial.element) for trial in trials if trial.verdict is Verdict.REFINE and trial.element)
    known = first + sum(len(parts_of(element, dimensions, config)) for element in refined)
    seconds = trials[-1].seconds if trials else 0.0
    left = (known - len(trials)) * seconds / len(trials) if trials else None
    return Progress(done=len(trials), known=known, seconds=seconds, seconds_left=left)
