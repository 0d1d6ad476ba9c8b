"""A forward pass of the model that starts at a given block with the block's input.

The model's own ``forward`` runs; only its layers are replaced. So embeddings and heads of any kind need no special treatment.
Where a walk starts above the first layer, the embeddings are not computed, since nothing there reads what they give.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import Architecture, BlockLayout
from axformer.architectures.hard_attention import READ_ATTRIBUTE
from axformer.architectures.slices import is_projection
from axformer.model.one_position import context_at
from axformer.model.tail import ReadPosition, mixes
from axformer.plan.blocks import Block, blocks_of_layer
from axformer.plan.plan import Plan


def has_shares(layout: BlockLayout, layer: nn.Module) -> bool:
    """Whether the output of a block can be observed, because its output projection is a module."""
    return is_projection(layout.weights(layer).output.module)


def added(
    layout: BlockLayout,
    layer: nn.Module,
    hidden: Tensor,
    arguments: Mapping[str, Any],
    position: ReadPosition | None = None,
    *,
    absorbed: bool = True,
) -> Tensor:
    """The output that a block adds to its input before any norm; of the shape of ``hidden``.

    Args:
        arguments: the other arguments of the layer's call, by name.
        position: compute the output of attention only for the token at this position; the result then has one token.
        absorbed: for this, compute no keys and values if the attention is plain.
    """
    weights = layout.weights(layer)
    if position is not None and absorbed and weights.plain is not None:
        context = context_at(weights.plain, hidden, arguments["attention_mask"], position.tokens)
        alone: Tensor = weights.output.module(context)
        return alone
    seen: list[Tensor] = []
    with ExitStack() as undo:
        if position is not None:
            assert weights.core is not None, "attention blocks name their core"
            setattr(weights.core, READ_ATTRIBUTE, position.tokens)
            undo.callback(delattr, weights.core, READ_ATTRIBUTE)
            one = weights.output.module.register_forward_pre_hook(lambda _, inputs: (inputs[0][:, :1],))
            undo.callback(one.remove)
        watch = weights.output.module.register_forward_hook(lambda _, __, output: seen.append(output))
        undo.callback(watch.remove)
        layout.run(layer, hidden, arguments)
    return seen[0]


Keep = Callable[[int, Tensor], None]
RunBlock = Callable[[nn.Module, Tensor, Mapping[str, Any]], Tensor]


@dataclass(frozen=True)
class Walk:
    """The way through the layers."""

    architecture: Architecture
    plan: Plan
    layers: Sequence[nn.Module]
    """The layer of every block, by the block's number, cut as in the plan."""
    start: int = 0
    """The number of the first block to run."""
    entry: Tensor | None = None
    """The input of the first block; None for the output of the embeddings."""
    tail: int | None = None
    """The first block that is run only at the position that the head reads; None if all positions are read."""
    position: ReadPosition | None = None
    tokens: int = 0
    """Number of positions of the model's activations."""
    keep: Keep = lambda *_: None
    """Called with the number and the input of every block that is run."""
    instead: Mapping[int, RunBlock] = field(default_factory=dict)
    """Replacements for running some blocks."""
    absorbed: bool = True
    """Whether attention at the position that the head reads may be computed without keys and values."""

    @contextmanager
    def on(self, model: Any) -> Iterator[None]:
        """Inside the ``with`` block, the model runs its layers in this way."""
        layers = self.architecture.layers(model)
        is_above = self.entry is not None and Block.at(self.start).layer > 0
        embeddings = getattr(model.base_model, "embeddings", None) if is_above else None
        try:
            for index, layer in enumerate(layers):
                layer.forward = partial(self._layer, index, _arguments(type(layer).forward))
            if embeddings is not None:
                embeddings.forward = partial(_blank, model.get_input_embeddings().weight)
            yield
        finally:
            for replaced in (*layers, embeddings):
                if replaced is not None:
                    replaced.__dict__.pop("forward", None)

    def _layer(self, index: int, names: Sequence[str], hidden: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Replace the ``forward`` of layer number ``index``, whose parameters have these ``names``."""
        arguments = dict(zip(names[1:], args, strict=False)) | kwargs
        for block in blocks_of_layer(index):
            hidden = self._block(block.number, hidden, arguments)
        if index + 1 == len(self.plan.layers):
            hidden = self._widen(hidden)
        return self.architecture.returned(hidden)

    def _block(self, block: int, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        if block < self.start:
            return hidden
        if block == self.start and self.entry is not None:
            hidden = self.entry
        self.keep(block, hidden)
        run = self.instead.get(block) or partial(self._run, block)
        if block == self.tail and self.position is not None:
            if mixes(self.plan, Block.at(block)):
                run = self.instead.get(block) or partial(self._read, block)
            else:
                hidden = self.position.narrow(hidden)
        return run(self.layers[block], hidden, arguments)

    def _read(self, block: int, layer: nn.Module, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        """Run attention at the position that the head reads."""
        assert self.position is not None
        layout = self.architecture.layout(Block.at(block))
        more = added(layout, layer, hidden, arguments, self.position, absorbed=self.absorbed)
        return layout.skip(layer, self.position.narrow(hidden) + more)

    def _run(self, number: int, layer: nn.Module, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        block = Block.at(number)
        layout, plan = self.architecture.layout(block), self.plan.layers[block.layer]
        if plan.dropped:
            return hidden
        return layout.run(layer, hidden, arguments) if block.is_kept_in(plan) else layout.skip(layer, hidden)

    def _widen(self, hidden: Tensor) -> Tensor:
        is_narrow = self.tail is not None and self.tail < len(self.layers)
        return self.position.widen(hidden, self.tokens) if is_narrow and self.position is not None else hidden


def _blank(weight: Tensor, input_ids: Tensor, *_: Any, **__: Any) -> Tensor:
    """Zeros of the shape of the embeddings' output, which take no memory."""
    return weight.new_zeros(1).expand(*input_ids.shape, weight.shape[1])


@cache
def _arguments(forward: Callable[..., Any]) -> Sequence[str]:
    """The parameter names of a layer class; the first is the output of the previous layer."""
    return tuple(inspect.signature(forward).parameters)[1:]  # after self
