"""Progress of a pass, computed from its trials alone."""

from collections import Counter
from collections.abc import Iterable

from axformer.config import PassConfig
from axformer.methods.axformer.acceptance import was_refused
from axformer.methods.axformer.ordering import inspection_order
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
    """The meter of a pass; see :class:`axformer.methods.progress.Meter`."""

    def __init__(self, dimensions: Dimensions, config: PassConfig) -> None:
        self.longest = 1 + (1 + len(config.trade_shares)) * _most_trials(dimensions, config)
        self._refused = 0
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
        self._count = 0
        self._seconds = 0.0

    def add(self, trials: Iterable[Trial]) -> None:
        """Add the next trials."""
        for trial in trials:
            self._count += 1
            self._seconds = trial.seconds
            self._refused += was_refused(trial, self._config)
            if trial.element is not None:
                if not self._inspected and trial.phase is not Phase.HARD_ATTENTION:
                    self._opening = self._count - 1  # hard attention may have been left out
                self._add(parse(trial.element), trial)

    def progress(self, *, ended: bool = False) -> Progress:
        done, seconds = self._count, self._seconds
        known = done if ended else self._known()
        left = (known - done) * seconds / done if done else None
        return Progress(done=done, known=known, seconds=seconds, seconds_left=left)

    @property
    def refused_by_safeguard(self) -> int | None:
        """How many trials the rule would have accepted and the safeguard refused; None without a safeguard."""
        return self._refused if self._config.is_guarded else None

    def _add(self, element: Element, trial: Trial) -> None:
        if element in self._blocks and element not in self._inspected:
            self._inspected.append(element)
        elif trial.phase is Phase.TRADE and element in self._blocks:
            self._trade(self._inspected.index(element))
        if trial.verdict is Verdict.REFINE:
            self._parts += self._parts_left(element)
        elif trial.verdict is Verdict.ACCEPT:
            self._plan = self._plan.apply(
                element, top_k=self._config.attention_top_k, keeps_bias=self._config.needs.fitting
            )
            self._groups_gone[element.layer] += element.kind is ElementKind.NEURONS

    def _parts_left(self, element: Element) -> int:
        parts = parts_of(element, self._dimensions, self._config)
        if (
            self._config.has_ranked_groups and element.kind is ElementKind.FFN
        ):  # which neurons a group holds goes by the data
            return len(parts) - self._groups_gone[element.layer]
        return sum(self._plan.holds(part, keeps_bias=self._config.needs.fitting) for part in parts)

    def _known(self) -> int:
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
        return sum(self._plan.holds(block, keeps_bias=self._config.needs.fitting) for block in self._blocks)


def _most_trials(dimensions: Dimensions, config: PassConfig) -> int:
    """The most trials of a pass before its trade, without that of the untouched model: every part of every block."""
    inspected = Counter(element.kind for element in inspection_order(dimensions, config))
    examples = (layer(0), attention(0), ffn(0))  # all layers are alike
    return (
        _opening(dimensions, config)
        - 1
        + sum(inspected[part.kind] * _tree(part, dimensions, config) for part in examples)
    )


def _tree(element: Element, dimensions: Dimensions, config: PassConfig) -> int:
    """Number of trials of an element and of all its parts."""
    return 1 + sum(_tree(part, dimensions, config) for part in parts_of(element, dimensions, config))


def _opening(dimensions: Dimensions, config: PassConfig) -> int:
    """Number of trials of a pass before its first block."""
    return 1 + (dimensions.layers if config.attention_top_k else 0)
