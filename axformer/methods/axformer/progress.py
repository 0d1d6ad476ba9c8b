"""How far a pass, or a search of orders, is, computed from its trials alone."""

from collections import Counter
from collections.abc import Iterable

from axformer.config import PassConfig
from axformer.methods.axformer.ordering import inspection_order
from axformer.methods.axformer.orders import pass_configs
from axformer.methods.progress import Progress
from axformer.plan.elements import (
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
from axformer.plan.plan import Plan
from axformer.plan.trial import Phase, Trial, Verdict


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


class PassMeter:
    """Tells how far a pass, or a search of orders, is while its trials come. What it costs to tell does not grow with them."""

    def __init__(self, dimensions: Dimensions, config: PassConfig) -> None:
        """Before the first trial.

        Args:
            dimensions: of the model.
            config: the knobs.
        """
        self._passes = [_Single(dimensions, one) for one in pass_configs(config)]
        self._opening = _opening(dimensions, config)
        self._begun = 0

    def add(self, trials: Iterable[Trial]) -> None:
        """Take the next trials, with ``order=search`` those of one pass after another."""
        for trial in trials:
            if trial.phase is Phase.BASE or not self._begun:
                self._begun += 1
            self._passes[self._begun - 1].add(trial)

    def progress(self, *, ended: bool = False) -> Progress:
        """How far it is. What opens all passes alike is measured in the first, so it is counted once.

        Args:
            ended: whether the last pass that was begun is over, which its trials do not say where it may stop at a target. One
                that another follows is over in any case.
        """
        over = self._begun if ended else self._begun - 1
        known = sum(one.count if place < over else one.known() for place, one in enumerate(self._passes))
        known -= self._opening * (len(self._passes) - 1)
        first, *others = self._passes
        done = first.count + sum(one.count - min(one.count, self._opening) for one in others)
        seconds = first.seconds + sum(one.seconds - one.opening_seconds for one in others)
        left = (known - done) * seconds / done if done else None
        return Progress(done=done, known=known, seconds=seconds, seconds_left=left)


class _Single:
    """What the trials of one pass come to."""

    def __init__(self, dimensions: Dimensions, config: PassConfig) -> None:
        self._dimensions = dimensions
        self._config = config
        self._opening = _opening(dimensions, config)
        self._blocks = inspection_order(dimensions, config)
        self._plan = Plan.full(dimensions)
        self._parts = 0
        self._groups_gone: Counter[int] = Counter()
        """Groups of neurons that were accepted, by layer."""
        self._rounds_left = len(config.trade_shares)
        """Rounds of the trade that have not begun."""
        self._traded = 0
        """Blocks that were there when each of the others began."""
        self._last_place = len(self._blocks)
        """Of the block that was tried last in the trade; a round begins where the order does not go on."""
        self.count = 0
        self.seconds = 0.0
        self.opening_seconds = 0.0

    def add(self, trial: Trial) -> None:
        """Take the next trial."""
        self.count += 1
        self.seconds = trial.seconds
        if self.count <= self._opening:
            self.opening_seconds = trial.seconds
        if trial.element is None:
            return
        element = parse(trial.element)
        if trial.phase is Phase.TRADE and element in self._blocks:
            self._trade(self._blocks.index(element))
        if trial.verdict is Verdict.REFINE:
            self._parts += self._parts_left(element)
        elif trial.verdict is Verdict.ACCEPT:
            self._plan = self._plan.apply(
                element, top_k=self._config.attention_top_k, keeps_bias=self._config.is_refitted
            )
            self._groups_gone[element.layer] += element.kind is ElementKind.NEURONS

    def _parts_left(self, element: Element) -> int:
        parts = parts_of(element, self._dimensions, self._config)
        if self._config.refit and element.kind is ElementKind.FFN:  # which neurons a group holds goes by the data
            return len(parts) - self._groups_gone[element.layer]
        return sum(self._plan.holds(part, keeps_bias=self._config.is_refitted) for part in parts)

    def known(self) -> int:
        """Trials that are done or known to come if it goes to its end."""
        known = self._opening + len(self._blocks) + self._parts
        return known + self._traded + self._rounds_left * self._blocks_left()

    def _trade(self, place: int) -> None:
        """Take the trial of a block in the trade, by its place in the order."""
        if place <= self._last_place:
            self._rounds_left -= 1
            self._traded += self._blocks_left()
        self._last_place = place

    def _blocks_left(self) -> int:
        return sum(self._plan.holds(block, keeps_bias=self._config.is_refitted) for block in self._blocks)


def _most_trials(dimensions: Dimensions, config: PassConfig) -> int:
    """Trials that a pass makes at most until its gains are taken, with all parts of all that it inspects and without the
    measurement of the base."""
    inspected = Counter(element.kind for element in inspection_order(dimensions, config))
    examples = (layer(0), attention(0), ffn(0))  # all layers are alike
    return (
        _opening(dimensions, config) - 1 + sum(inspected[one.kind] * _tree(one, dimensions, config) for one in examples)
    )


def longest_trace(dimensions: Dimensions, config: PassConfig) -> int:
    """Trials that a pass, or a search of orders, makes at most: the base, and all parts of all that each round inspects."""
    passes = pass_configs(config)
    return sum(1 + (1 + len(one.trade_shares)) * _most_trials(dimensions, one) for one in passes)


def _tree(element: Element, dimensions: Dimensions, config: PassConfig) -> int:
    """Trials of an element and of all parts of it."""
    return 1 + sum(_tree(part, dimensions, config) for part in parts_of(element, dimensions, config))


def _opening(dimensions: Dimensions, config: PassConfig) -> int:
    """Trials of a pass before its first block."""
    return 1 + (dimensions.layers if config.hard_attention else 0)
