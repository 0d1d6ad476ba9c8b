"""How far a pass, or a search of orders, is, computed from its trials alone."""

from collections import Counter
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
    layer,
    neuron_groups_of,
    parse,
)
from axformer.order_search import pass_configs, passes_in
from axformer.ordering import inspection_order
from axformer.plan import Plan
from axformer.trial import Phase, Trial, Verdict


@dataclass(frozen=True)
class Progress:
    """Trials done and known to come. Blocks still to be tried may add their parts, so ``known`` can grow; where a pass stops at
    its target, it falls to what was done, and before a trade (``tolerance``) it falls by each block that need not be tried
    again."""

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


def progress_of(
    trials: Sequence[Trial], dimensions: Dimensions, config: PassConfig, *, ended: bool = False
) -> Progress:
    """How far a pass with this trace is.

    Args:
        trials: with ``order=search`` those of all passes, one pass after another. What opens all of them alike is measured in
            the first, so it is counted once.
        dimensions: of the model.
        config: the knobs.
        ended: whether the last of these passes is over, which its trials do not say where it may stop at a target. One that
            another follows is over in any case.
    """
    opening, configs = _opening(dimensions, config), pass_configs(config)
    passes = passes_in(trials)
    over = len(passes) if ended else len(passes) - 1
    traces = [*passes, *([] for _ in configs[len(passes) :])]
    known = -opening * (len(configs) - 1)
    for place, (one, trace) in enumerate(zip(configs, traces, strict=True)):
        known += len(trace) if place < over else _known(trace, dimensions, one)
    done = len(trials) - sum(min(len(trace), opening) for trace in passes[1:])
    seconds = passes[0][-1].seconds if passes else 0.0
    seconds += sum(trace[-1].seconds - trace[min(len(trace), opening) - 1].seconds for trace in passes[1:])
    left = (known - done) * seconds / done if done else None
    return Progress(done=done, known=known, seconds=seconds, seconds_left=left)


def most_trials(dimensions: Dimensions, config: PassConfig) -> int:
    """Trials that a pass makes at most until its gains are taken, with all parts of all that it inspects and without the
    measurement of the base."""
    inspected = Counter(element.kind for element in inspection_order(dimensions, config))
    examples = (layer(0), attention(0), ffn(0))  # all layers are alike
    return (
        _opening(dimensions, config) - 1 + sum(inspected[one.kind] * _tree(one, dimensions, config) for one in examples)
    )


def _tree(element: Element, dimensions: Dimensions, config: PassConfig) -> int:
    """Trials of an element and of all parts of it."""
    return 1 + sum(_tree(part, dimensions, config) for part in parts_of(element, dimensions, config))


def _opening(dimensions: Dimensions, config: PassConfig) -> int:
    """Trials of a pass before its first block."""
    return 1 + (dimensions.layers if config.hard_attention else 0)


def _known(trace: Sequence[Trial], dimensions: Dimensions, config: PassConfig) -> int:
    """Trials of a pass that are done or known to come if it goes to its end."""
    gains = [trial for trial in trace if trial.phase is not Phase.TRADE]
    plan, parts = _refined(Plan.full(dimensions), gains, dimensions, config)
    blocks = inspection_order(dimensions, config)
    known = _opening(dimensions, config) + len(blocks) + parts
    if config.tolerance is None:
        return known
    _, parts = _refined(plan, trace[len(gains) :], dimensions, config)
    return known + sum(plan.holds(block) for block in blocks) + parts


def _refined(plan: Plan, trials: Sequence[Trial], dimensions: Dimensions, config: PassConfig) -> tuple[Plan, int]:
    """What some trials leave of a plan, and how many parts their refined elements had left."""
    parts = 0
    for trial in trials:
        if trial.element is None:
            continue
        element = parse(trial.element)
        if trial.verdict is Verdict.REFINE:
            parts += sum(plan.holds(part) for part in parts_of(element, dimensions, config))
        elif trial.verdict is Verdict.ACCEPT:
            plan = plan.apply(element, top_k=config.attention_top_k)
    return plan, parts
