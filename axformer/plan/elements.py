"""Elements: the removable parts of a transformer, at the granularities of the paper (section III-A), and their ids.

| id                              | kind           | what removal means                                                 |
|---------------------------------|----------------|--------------------------------------------------------------------|
| ``layer.3``                     | layer          | both of its blocks are removed; their LayerNorms stay              |
| ``layer.3.drop``                | layer_drop     | the layer returns its input: no block and no LayerNorm is left     |
| ``layer.3.attention``           | attention      | the block adds nothing to the residual stream; its LayerNorm stays |
| ``layer.3.ffn``                 | ffn            | the same                                                           |
| ``layer.3.attention.head.5``    | head           | the head's slice of the context is 0; the projection's bias stays  |
| ``layer.3.ffn.neurons.128:256`` | neurons        | those activations are 0 before the projection down; its bias stays |
| ``layer.3.ffn.neurons.2,7,9:12`` | neurons       | the same of neurons that do not lie side by side                   |
| ``layer.3.hard_attention``      | hard_attention | a rewrite: only the K largest attention probabilities are kept     |
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from axformer.errors import PlanError

Ranges = tuple[tuple[int, int], ...]

_DROP = "drop"
"""How the id of a dropped layer ends."""
_SHOWN = 40
"""Characters of a wrong id that a message shows."""
_REMEMBERED = 20_000
"""Size of the cache of parsed ids, more than a pass has; a page that follows a pass parses the same ids repeatedly."""


class ElementKind(StrEnum):
    """What an element is."""

    LAYER = "layer"
    LAYER_DROP = "layer_drop"
    ATTENTION = "attention"
    FFN = "ffn"
    HEAD = "head"
    NEURONS = "neurons"
    HARD_ATTENTION = "hard_attention"


@dataclass(frozen=True)
class Element:
    """One removable part. ``start`` and ``stop`` bound heads or neurons, half open; whole blocks have none."""

    kind: ElementKind
    layer: int
    start: int | None = None
    stop: int | None = None
    scattered: Ranges = ()
    """The neurons of a group that do not lie side by side, as ascending half-open ranges that do not touch."""

    @property
    def ranges(self) -> Ranges:
        """The heads or neurons, as ascending half-open ranges; none of a whole block."""
        if self.start is None or self.stop is None:
            return ()
        return self.scattered or ((self.start, self.stop),)

    @property
    def id(self) -> str:
        """The element's name in traces, plans and the API, for example ``layer.3.attention.head.5``."""
        match self.kind:
            case ElementKind.LAYER:
                return f"layer.{self.layer}"
            case ElementKind.LAYER_DROP:
                return f"layer.{self.layer}.{_DROP}"
            case ElementKind.HEAD:
                return f"layer.{self.layer}.attention.head.{self.start}"
            case ElementKind.NEURONS:
                return f"layer.{self.layer}.ffn.neurons.{_written(self)}"
            case _:
                return f"layer.{self.layer}.{self.kind.value}"

    @property
    def label(self) -> str:
        """The name for people: the id, or how many neurons there are where it would list them."""
        if not self.scattered:
            return self.id
        count = sum(stop - start for start, stop in self.scattered)
        return f"layer.{self.layer}.ffn.neurons ({count} from {self.start})"

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True)
class Dimensions:
    """The counts of a transformer that determine its elements."""

    layers: int
    heads: int
    hidden_size: int
    intermediate_size: int


def layer(index: int) -> Element:
    """Both blocks of one layer."""
    return Element(ElementKind.LAYER, index)


def layer_drop(index: int) -> Element:
    """One layer with its norms, which then returns its input."""
    return Element(ElementKind.LAYER_DROP, index)


def attention(index: int) -> Element:
    """The self-attention block of one layer."""
    return Element(ElementKind.ATTENTION, index)


def ffn(index: int) -> Element:
    """The feed-forward block of one layer."""
    return Element(ElementKind.FFN, index)


def hard_attention(index: int) -> Element:
    """The rewrite of one layer's soft attention into hard attention."""
    return Element(ElementKind.HARD_ATTENTION, index)


def head(layer: int, index: int) -> Element:
    """One attention head."""
    return Element(ElementKind.HEAD, layer, index, index + 1)


def neurons(layer: int, start: int, stop: int) -> Element:
    """The feed-forward neurons ``start`` to ``stop``, half open."""
    return Element(ElementKind.NEURONS, layer, start, stop)


def neuron_group(layer: int, indices: Iterable[int]) -> Element:
    """Any feed-forward neurons of one layer, at least one."""
    ranges = ranges_of(sorted(set(indices)))
    group = neurons(layer, ranges[0][0], ranges[-1][1])
    return group if len(ranges) == 1 else replace(group, scattered=ranges)


def ranges_of(numbers: Iterable[int]) -> Ranges:
    """Ascending numbers as half-open ranges that do not touch."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number:
            ranges[-1] = ranges[-1][0], number + 1
        else:
            ranges.append((number, number + 1))
    return tuple(ranges)


def heads_of(layer: int, dimensions: Dimensions) -> list[Element]:
    """All heads of a layer's attention block, in order."""
    return [head(layer, index) for index in range(dimensions.heads)]


def neuron_groups_of(layer: int, dimensions: Dimensions, group_size: int) -> list[Element]:
    """All neuron groups of a layer's feed-forward block, in order; the last may be smaller."""
    size = dimensions.intermediate_size
    return [neurons(layer, start, min(start + group_size, size)) for start in range(0, size, group_size)]


def halves_of(group: Element) -> list[Element]:
    """The two halves of a neuron group, the first no larger than the second; empty for a single neuron."""
    assert group.start is not None
    assert group.stop is not None
    assert not group.scattered, "groups that lie side by side have halves"
    middle = (group.start + group.stop) // 2
    return [
        neurons(group.layer, *half) for half in ((group.start, middle), (middle, group.stop)) if middle > group.start
    ]


_ENCODER = "encoder."


def encoder_share(share: float) -> str:
    """The id of a trial of a whole plan: the encoder cut to this share of its operations, for example ``encoder.0.5``."""
    return f"{_ENCODER}{share:g}"


def units_left(gone: float) -> str:
    """The id of a trial of a whole plan: this share of the heads and neurons has left, for example ``encoder.less.0.25``."""
    return f"{_ENCODER}less.{gone:g}"


def depth(layers: int) -> str:
    """The id of a trial of a whole plan that keeps this many layers, for example ``encoder.layers.6``."""
    return f"{_ENCODER}layers.{layers}"


def is_of_encoder(id: str | None) -> bool:
    """Whether an id is that of a trial of a whole plan."""
    return id is not None and id.startswith(_ENCODER)


_ID = re.compile(
    r"layer\.(?P<layer>\d+)"
    r"(?:\.(?P<drop>drop)|\.(?P<block>attention|ffn|hard_attention)|\.attention\.head\.(?P<head>\d+)|\.ffn\.neurons\.(?P<start>\d+):(?P<stop>\d+)"
    r"|\.ffn\.neurons\.(?P<scattered>\d+(?::\d+)?(?:,\d+(?::\d+)?)+))?"
)


@lru_cache(maxsize=_REMEMBERED)
def parse(id: str) -> Element:
    """The element with this id.

    Raises:
        PlanError: the text is not an element id.
    """
    found = _ID.fullmatch(id)
    if found is None:
        raise PlanError(f"'{id}' is not an element id; ids look like layer.0.ffn or layer.3.attention.head.5")
    index = int(found["layer"])
    if found["drop"]:
        return layer_drop(index)
    if found["block"]:
        return Element(ElementKind(found["block"]), index)
    if found["head"]:
        return head(index, int(found["head"]))
    if found["start"]:
        return neurons(index, int(found["start"]), int(found["stop"]))
    if found["scattered"]:
        return _scattered(index, found["scattered"])
    return layer(index)


def label_of(id: str | None, of_base: str) -> str:
    """The name of a trial's element for people: its id, without a list of neurons.

    Args:
        id: of an element or of a whole plan; None for the untouched model.
        of_base: what the untouched model is called.
    """
    if id is None:
        return of_base
    return parse(id).label if "," in id else id


def _scattered(layer: int, text: str) -> Element:
    bounds = [[int(edge) for edge in part.split(":")] for part in text.split(",")]
    ranges = tuple((edges[0], edges[-1] if len(edges) > 1 else edges[0] + 1) for edges in bounds)
    edges = [edge for part in ranges for edge in part]
    if edges != sorted(set(edges)):
        raise PlanError(f"the neurons '{text[:_SHOWN]}' of layer {layer} are not ascending ranges that do not touch")
    return replace(neurons(layer, ranges[0][0], ranges[-1][1]), scattered=ranges)


def _written(group: Element) -> str:
    if not group.scattered:
        return f"{group.start}:{group.stop}"
    return ",".join(f"{start}" if stop == start + 1 else f"{start}:{stop}" for start, stop in group.scattered)
