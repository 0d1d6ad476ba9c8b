"""Let a compact model compute its last layers at the one position that its head reads.

Nothing mixes tokens behind the last attention that is left, so what stands there is needed at one position only, and where
attention is plain that attention's own query too (ALGORITHM, "Exactness"; :mod:`axformer.model.tail`). The model's own
``forward`` runs. Its last layers hand on one token, and the very last gives it back at all positions, of which the head reads
the one that it is of.

A call that may be about other positions computes them all: in training, where hidden states, attentions or a memory for a
later call are asked for, and of the model without its head.
"""

import inspect
import threading
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache, partial
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import Architecture, AttentionLayout
from axformer.architectures.hard_attention import ATTENTION_NAME
from axformer.model.absorbed import context_at
from axformer.model.tail import ReadPosition, mixes, tail_start
from axformer.plan.plan import Plan

HARMLESS = ("input_ids", "attention_mask", "token_type_ids", "position_ids", "labels", "return_dict")
"""Arguments that change nothing of which positions are read. With any other the model computes all."""
MORE_OUTPUTS = ("output_hidden_states", "output_attentions")
MEMORIES = ("use_cache", "use_mems")
"""What asks a model to hand out keys and values for a later call; without that they are not kept."""
UNDERSTOOD = ("eager", "sdpa", ATTENTION_NAME)
"""Implementations of attention whose masks broadcast to (rows, heads, tokens, tokens)."""


@dataclass(frozen=True)
class _Call:
    """A call of a model of which one position of each row is wanted."""

    position: ReadPosition
    tokens: int
    """Of each row, padding included."""


class _UnderWay(threading.local):
    """The call that this thread is in; None if all positions are computed. Threads may share a model."""

    def __init__(self) -> None:
        self.call: _Call | None = None  # in every thread from the start: torch.compile minds when it first appears


_UNDER_WAY = _UnderWay()


class Narrows(Enum):
    """Where in a layer all positions become one."""

    AT_ONCE = auto()
    BY_QUERY = auto()
    """In its attention, which takes in all positions and is asked for one."""
    BEHIND_ATTENTION = auto()
    NOWHERE = auto()
    """In a layer below."""


@dataclass(frozen=True)
class _Place:
    """What a layer has to do in such a call."""

    architecture: Architecture
    narrows: Narrows
    is_last: bool


def read_one_position(model: Any, architecture: Architecture, plan: Plan) -> None:
    """Let a model compute its last layers at the position only that its head reads.

    Args:
        model: compact, with a head that reads one position.
        architecture: its family.
        plan: what is left of it.
    """
    layers = architecture.layers(model)
    earliest = 2 * architecture.mixes_tokens_after(model.config)
    start = tail_start(plan, earliest, reads_one=_last_attention_is_plain(layers, architecture, plan))
    for index in range(start // 2, len(layers)):
        layer: Any = layers[index]
        is_last = index == len(layers) - 1
        layer.axformer_place = _Place(architecture, _narrows(plan, start, index), is_last)
        layer.__class__ = _tail_class(layer.__class__)
    model.register_forward_pre_hook(
        partial(_begin, architecture, tuple(inspect.signature(model.forward).parameters)), with_kwargs=True
    )
    model.register_forward_hook(_end, always_call=True)


def _last_attention_is_plain(layers: Any, architecture: Architecture, plan: Plan) -> bool:
    mixing = [index for index in range(len(layers)) if mixes(plan, 2 * index)]
    return bool(mixing) and architecture.attention.weights(layers[mixing[-1]]).plain is not None


def _narrows(plan: Plan, start: int, layer: int) -> Narrows:
    if layer != start // 2:
        return Narrows.NOWHERE
    if start % 2:
        return Narrows.BEHIND_ATTENTION
    return Narrows.BY_QUERY if mixes(plan, start) else Narrows.AT_ONCE


def _begin(
    architecture: Architecture, names: tuple[str, ...], model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Before a model's ``forward``: find the position, if this call is about one."""
    _UNDER_WAY.call = None
    given = dict(zip(names, args, strict=False)) | kwargs
    ids = given.get("input_ids")
    if ids is None or model.training or not _is_about_one(model.config, given):
        return args, kwargs
    tokens = architecture.read_position(model.config, ids.flatten(end_dim=-2))
    if tokens is None:
        return args, kwargs
    _UNDER_WAY.call = _Call(ReadPosition(tokens, architecture.token_axis), ids.shape[-1])
    return args, kwargs | {name: False for name in MEMORIES if name in names}


def _is_about_one(config: Any, given: dict[str, Any]) -> bool:
    if config._attn_implementation not in UNDERSTOOD or any(getattr(config, name, False) for name in MORE_OUTPUTS):
        return False
    return all(name in HARMLESS or value is None or value is False for name, value in given.items())


def _end(*_: Any) -> None:
    """After it, whatever came of it."""
    _UNDER_WAY.call = None


@cache
def _tail_class(family: Any) -> Any:
    """A layer's class, in calls about one position with a ``forward`` of that position."""

    def forward(self: Any, hidden: Tensor, *args: Any, **kwargs: Any) -> Any:
        call = _UNDER_WAY.call
        if call is None:
            return family.forward(self, hidden, *args, **kwargs)
        return _at_one_position(self, call, hidden, dict(zip(names[1:], args, strict=False)) | kwargs)

    names = tuple(inspect.signature(family.forward).parameters)[1:]
    return type(family.__name__, (family,), {"__module__": __name__, "forward": forward})


def _at_one_position(layer: Any, call: _Call, hidden: Tensor, arguments: dict[str, Any]) -> Any:
    """What the layer gives back around its output, of one position until the last layer."""
    place: _Place = layer.axformer_place
    family = place.architecture
    if place.narrows is Narrows.BY_QUERY:
        hidden = _attention_of_one(layer, family.attention, hidden, call.position, arguments)
    else:
        hidden = call.position.narrow(hidden) if place.narrows is Narrows.AT_ONCE else hidden
        hidden = family.attention.run(layer, hidden, arguments)
    hidden = call.position.narrow(hidden) if place.narrows is Narrows.BEHIND_ATTENTION else hidden
    hidden = family.ffn.run(layer, hidden, arguments)
    return family.returned(call.position.widen(hidden, call.tokens) if place.is_last else hidden)


def _attention_of_one(
    layer: Any, layout: AttentionLayout, hidden: Tensor, position: ReadPosition, arguments: dict[str, Any]
) -> Tensor:
    """The attention block for the query of one position, given all positions."""
    weights = layout.weights(layer)
    plain = weights.plain
    if plain is None or not all(_is_untouched(module) for module in (plain.query, plain.key, plain.value)):
        return position.narrow(layout.run(layer, hidden, arguments))
    context = context_at(plain, hidden, arguments["attention_mask"], position.tokens)
    return layout.skip(layer, position.narrow(hidden) + weights.output.module(context))


def _is_untouched(module: nn.Module) -> bool:
    """Whether a projection's weights say what it computes: nobody has quantized it or put an adapter around it."""
    return type(module) is nn.Linear and "forward" not in module.__dict__
