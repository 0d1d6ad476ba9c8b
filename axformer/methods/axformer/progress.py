"""Progress of a pass, or of a search of orders, computed from its trials alone."""

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
    """The parts of an element to try after the verdict "refine", in order."""
    match element.kind:
        case ElementKind.LAYER:
            return [ffn(element.layer), attention(element.layer)]
        case ElementKind.ATTENTION:
            return heads_of(element.layer, dimensions)
        case ElementKind.FFN:
            return neuron_groups_of(element.layer, dimensions, config.group_size(dimensions.intermediate_size))
        case ElementKind.NEURONS if config.variant.neuron_search == "bisect":
            return halves_of(element)
        case _:
            return []


class PassMeter:
    """Computes the progress of a pass, or of a search of orders, as its trials arrive, at a cost that does not grow."""

    def __init__(self, dimensions: Dimensions, config: PassConfig) -> None:
        """
        Args:
            dimensions: of the model.
            config: the knobs.
        """
        self._passes = [_SinglePass(dimensions, of_pass) for of_pass in pass_configs(config)]
        self._opening = _opening(dimensions, config)
        self._begun = 0

    def add(self, trials: Iterable[Trial]) -> None:
        """Add the next trials; with ``order=search`` the passes come one after another."""
        for trial in trials:
            if trial.phase is Phase.BASE or not self._begun:
                self._begun += 1
            self._passes[self._begun - 1].add(trial)

    def progress(self, *, ended: bool = False) -> Progress:
        """The progress of the run. The opening trials are the same in all passes and are counted once.

        Args:
            ended: whether the pass that was begun last has ended. Its trials alone cannot say that if it may stop at a
                target. Every pass before it has ended in any case.
        """
        over = self._begun if ended else self._begun - 1
        known = sum(meter.count if index < over else meter.known() for index, meter in enumerate(self._passes))
        known -= self._opening * (len(self._passes) - 1)
        first, *others = self._passes
        done = first.count + sum(meter.count - min(meter.count, self._opening) for meter in others)
        seconds = first.seconds + sum(meter.seconds - meter.opening_seconds for meter in others)
        left = (known - done) * seconds / done if done else None
        return Progress(done=done, known=known, seconds=seconds, seconds_left=left)


class _SinglePass:
    """Counts the trials of one pass."""

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
        """Trials of the rounds that have begun: the blocks that remained when each began."""
        self._inspected: list[Element] = []
        """The blocks in the order in which they were first tried."""
        self._last_index = len(self._blocks)
        """Index of the block that was tried last in the trade; a new round begins when the index does not rise."""
        self.count = 0
        self.seconds = 0.0
        self.opening_seconds = 0.0

    def add(self, trial: Trial) -> None:
        """Add the next trial."""
        self.count += 1
        self.seconds = trial.seconds
        if self.count <= self._opening:
            self.opening_seconds = trial.seconds
        if trial.element is None:
            return
        element = parse(trial.element)
        if element in self._blocks and element not in self._inspected:
            self._inspected.append(element)
        elif trial.phase is Phase.TRADE and element in self._blocks:
            self._trade(self._inspected.index(element))
        if trial.verdict is Verdict.REFINE:
            self._parts += self._parts_left(element)
        elif trial.verdict is Verdict.ACCEPT:
            self._plan = self._plan.apply(
                element, top_k=self._config.attention_top_k, keeps_bias=self._config.is_refitted
            )
            self._groups_gone[element.layer] += element.kind is ElementKind.NEURONS

    def _parts_left(self, element: Element) -> int:
        parts = parts_of(element, self._dimensions, self._config)
        if (
            self._config.has_ranked_groups and element.kind is ElementKind.FFN
        ):  # which neurons a group holds goes by the data
            return len(parts) - self._groups_gone[element.layer]
        return sum(self._plan.holds(part, keeps_bias=self._config.is_refitted) for part in parts)

    def known(self) -> int:
        """Trials that are done or known to come if the pass runs to its end."""
        known = self._opening + len(self._blocks) + self._parts
        return known + self._traded + self._rounds_left * self._blocks_left()

    def _trade(self, index: int) -> None:
        """Count a trial of the trade, given the index of its block in the order."""
        if index <= self._last_index:
            self._rounds_left -= 1
            self._traded += self._blocks_left()
        self._last_index = index

    def _blocks_left(self) -> int:
        return sum(self._plan.holds(block, keeps_bias=self._config.is_refitted) for block in self._blocks)


def _most_trials(dimensions: Dimensions, config: PassConfig) -> int:
    """The most trials of a pass before its trade, without that of the untouched model: every part of every block."""
    inspected = Counter(element.kind for element in inspection_order(dimensions, config))
    examples = (layer(0), attention(0), ffn(0))  # all layers are alike
    return (
        _opening(dimensions, config)
        - 1
        + sum(inspected[part.kind] * _tree(part, dimensions, config) for part in examples)
    )


def longest_trace(dimensions: Dimensions, config: PassConfig) -> int:
    """The most trials of a pass, or of a search of orders: the untouched model, and every part of every block in each round."""
    passes = pass_configs(config)
    return sum(1 + (1 + len(of_pass.trade_shares)) * _most_trials(dimensions, of_pass) for of_pass in passes)


def _tree(element: Element, dimensions: Dimensions, config: PassConfig) -> int:
    """Number of trials of an element and of all its parts."""
    return 1 + sum(_tree(part, dimensions, config) for part in parts_of(element, dimensions, config))


def _opening(dimensions: Dimensions, config: PassConfig) -> int:
    """Number of trials of a pass before its first block."""
    return 1 + (dimensions.layers if config.attention_top_k else 0)
