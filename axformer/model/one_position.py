"""Make a compact model compute its last layers only at the position that its head reads.

Nothing mixes tokens after the last remaining attention, so from there on only one position is needed; with plain attention,
that attention itself needs only one query (ALGORITHM, "Exactness"; :mod:`axformer.model.tail`). The model's own ``forward``
runs: its last layers pass one token on, and the very last one repeats it at all positions, of which the head reads its own.

A call that may need other positions computes all of them: in training, if hidden states, attentions or a memory for a later
call are requested, and for the model without its head.
"""

import inspect
import threading
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from axformer.architectures.base import Architecture, AttentionLayout, PlainAttention
from axformer.architectures.hard_attention import ATTENTION_NAME, keep_top_k
from axformer.model.tail import ReadPosition, mixes, tail_start
from axformer.plan.blocks import Block
from axformer.plan.plan import Plan

HARMLESS = ("input_ids", "attention_mask", "token_type_ids", "position_ids", "labels", "return_dict")
"""Arguments that do not affect which position is read. With any other argument the model computes all positions."""
MORE_OUTPUTS = ("output_hidden_states", "output_attentions")
MEMORIES = ("use_cache", "use_mems")
"""Arguments that ask a model to return keys and values for a later call."""
UNDERSTOOD = ("eager", "sdpa", ATTENTION_NAME)
"""Attention implementations whose masks broadcast to (rows, heads, tokens, tokens)."""


@dataclass(frozen=True)
class _Call:
    """A call of a model for one position of each row."""

    position: ReadPosition
    tokens: int
    """Tokens of each row, including padding."""


class _UnderWay(threading.local):
    """The current call of this thread; None if all positions are computed. Threads may share a model."""

    def __init__(self) -> None:
        self.call: _Call | None = (
            None  # set in every thread from the start, since torch.compile reacts when it first appears
        )


_UNDER_WAY = _UnderWay()


class Narrows(Enum):
    """Where in a layer the computation narrows to one position."""

    AT_ONCE = auto()
    BY_QUERY = auto()
    """In its attention, which reads all positions for one query."""
    BEHIND_ATTENTION = auto()
    NOWHERE = auto()
    """Already in a layer below."""


@dataclass(frozen=True)
class _Place:
    """The role of a layer in such a call."""

    architecture: Architecture
    narrows: Narrows
    is_last: bool


def read_one_position(model: Any, architecture: Architecture, plan: Plan) -> None:
    """Make a model compute its last layers only at the position that its head reads.

    Args:
        model: compact, with a head that reads one position.
    """
    layers = architecture.layers(model)
    earliest = architecture.mixes_tokens_after(model.config)
    start = Block.at(tail_start(plan, earliest, reads_one=_last_attention_is_plain(layers, architecture, plan)))
    for index in range(start.layer, len(layers)):
        layer: Any = layers[index]
        is_last = index == len(layers) - 1
        layer.axformer_place = _Place(architecture, _narrows(plan, start, index), is_last)
        layer.__class__ = _tail_class(layer.__class__)
    model.register_forward_pre_hook(
        partial(_begin, architecture, tuple(inspect.signature(model.forward).parameters)), with_kwargs=True
    )
    model.register_forward_hook(_end, always_call=True)


def _last_attention_is_plain(layers: Any, architecture: Architecture, plan: Plan) -> bool:
    mixing = [index for index, left in enumerate(plan.layers) if left.heads]
    return bool(mixing) and architecture.attention.weights(layers[mixing[-1]]).plain is not None


def _narrows(plan: Plan, start: Block, layer: int) -> Narrows:
    if layer != start.layer:
        return Narrows.NOWHERE
    if start.is_ffn:
        return Narrows.BEHIND_ATTENTION
    return Narrows.BY_QUERY if mixes(plan, start) else Narrows.AT_ONCE


def _begin(
    architecture: Architecture, names: tuple[str, ...], model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Pre-hook of a model's ``forward``: find the position if this call needs only one."""
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
    """Hook after ``forward``, even if it raised."""
    _UNDER_WAY.call = None


@cache
def _tail_class(family: Any) -> Any:
    """A subclass of a layer whose ``forward`` computes one position in such calls."""

    def forward(self: Any, hidden: Tensor, *args: Any, **kwargs: Any) -> Any:
        call = _UNDER_WAY.call
        if call is None:
            return family.forward(self, hidden, *args, **kwargs)
        return _at_one_position(self, call, hidden, dict(zip(names[1:], args, strict=False)) | kwargs)

    names = tuple(inspect.signature(family.forward).parameters)[1:]

    def reduce(self: Any) -> tuple[Any, ...]:
        return _new_tail, (family,), self.__dict__

    body = {"__module__": __name__, "forward": forward, "__reduce__": reduce}
    return type(family.__name__, (family,), body)


def _new_tail(family: Any) -> Any:
    """An empty layer of such a class, for pickles."""
    made = _tail_class(family)
    return made.__new__(made)


def _at_one_position(layer: Any, call: _Call, hidden: Tensor, arguments: dict[str, Any]) -> Any:
    """The layer's return value, with one position up to the last layer."""
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
    """Whether a projection computes just what its weights say: it is neither quantized nor wrapped in an adapter."""
    return type(module) is nn.Linear and "forward" not in module.__dict__


def context_at(attention: PlainAttention, hidden: Tensor, mask: Tensor | None, tokens: Tensor) -> Tensor:
    """The attention context of one token of each row, without computing keys and values of all tokens.

    With ``q`` the query of a head and ``x`` the block's input, a score is ``q · (Wk x) = (Wkᵀ q) · x`` up to the contribution
    of the bias, which is the same for all scores of the query, so the softmax cancels it. The context is
    ``Σ p (Wv x + b) = Wv (Σ p x) + b Σ p``. The two largest products of the block then run once per row, not once per token.

    Args:
        hidden: the block's input, shape (rows, tokens, hidden).
        mask: None, or a tensor that broadcasts to (rows, 1, tokens, tokens): numbers are added to the scores, and False masks a
            position out.
        tokens: the position of the query, shape (rows,).

    Returns:
        Shape (rows, 1, heads x head size).
    """
    rows, heads = torch.arange(tokens.shape[0], device=hidden.device), attention.heads
    query = _by_head(attention.query(hidden[rows, tokens]).T.contiguous(), heads).transpose(1, 2)
    asked = (query @ _by_head(attention.key.weight, heads)).transpose(0, 1)
    scores = asked @ hidden.transpose(1, 2) * attention.scaling
    if mask is not None:
        asked_of = mask.expand(rows.shape[0], -1, -1, -1)[rows, :, tokens if mask.shape[2] > 1 else 0]
        scores = scores.masked_fill(~asked_of, -torch.inf) if mask.dtype == torch.bool else scores + asked_of
    probabilities = scores.softmax(dim=-1)
    if attention.top_k is not None:
        probabilities = keep_top_k(probabilities, attention.top_k)
    mixed = (probabilities @ hidden).transpose(0, 1)
    context = (mixed @ _by_head(attention.value.weight, heads).transpose(1, 2)).transpose(0, 1)
    if attention.value.bias is not None:
        context = context + probabilities.sum(dim=-1, keepdim=True) * attention.value.bias.view(heads, -1)
    return context.flatten(start_dim=1)[:, None]


def _by_head(outputs: Tensor, heads: int) -> Tensor:
    """Group the rows of projections by head: from (heads x head size, n) to (heads, head size, n)."""
    return outputs.view(heads, -1, outputs.shape[-1])
