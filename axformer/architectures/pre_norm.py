"""Pre-LN blocks: a norm, then attention or an FFN, added to the residual stream. A removed block leaves nothing behind.

Families differ in names, in the fusion of projections, and in the position arguments of attention.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import BlockWeights
from axformer.architectures.removed import Constant, ConstantAttention, ConstantDecoderAttention
from axformer.architectures.slices import Slice, into, out_of


def _all_heads_are_alike(*_: Any) -> None:
    """Heads are counted from the projections' shapes."""


@dataclass(frozen=True)
class PreNormAttention:
    """See :class:`axformer.architectures.base.AttentionLayout`."""

    norm: str
    """The norm's name in the layer."""
    body: str
    """The attention module's name in the layer."""
    inputs: Callable[[Any], tuple[Slice, ...]]
    """The slices of the attention module's input projections that heads own."""
    output: str
    """The output projection's name in the attention module."""
    takes: tuple[str, ...]
    """Names of the layer's arguments that are passed on to attention."""
    keep: Callable[[Any, Sequence[int], int], None] = _all_heads_are_alike
    """Informs an attention module which of its heads its projections still hold."""
    head_norms: tuple[str, ...] = ()
    """Norms inside the attention module, the same for all heads."""
    causal: bool = False
    """Whether it uses a cache of keys and values."""

    def weights(self, layer: Any) -> BlockWeights:
        core = getattr(layer, self.body)
        output = getattr(core, self.output)
        company = (getattr(layer, self.norm), *(getattr(core, name) for name in self.head_norms))
        return BlockWeights(self.inputs(core), out_of(output), output.bias, company, core)

    def run(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        taken = {name: arguments[name] for name in self.takes}
        added: Tensor = getattr(layer, self.body)(getattr(layer, self.norm)(hidden), **taken)[0]
        return hidden + added

    def skip(self, layer: Any, hidden: Tensor) -> Tensor:  # noqa: ARG002 - nothing of the layer is left
        return hidden

    def remove(self, layer: Any, bias: nn.Parameter | None) -> None:
        core = getattr(layer, self.body)
        setattr(layer, self.norm, nn.Identity())
        setattr(
            layer,
            self.body,
            ConstantDecoderAttention(bias, core.layer_idx) if self.causal else ConstantAttention(bias),
        )

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:
        self.keep(getattr(layer, self.body), heads, total)


@dataclass(frozen=True)
class PreNormFeedForward:
    """See :class:`axformer.architectures.base.BlockLayout`."""

    norm: str
    """The norm's name in the layer."""
    inputs: tuple[str, ...]
    """Names of the up projections, and of the gate if there is one, in the FFN module."""
    output: str
    """The down projection's name in the FFN module."""
    copies: int = 1
    """Number of up projections and gates that are fused into one."""
    activation: str | None = None
    """The activation function's name in the FFN module, if there is no gate."""
    body: str = "mlp"
    """The FFN module's name in the layer."""

    def weights(self, layer: Any) -> BlockWeights:
        body = getattr(layer, self.body)
        inputs = tuple(part for name in self.inputs for part in into(getattr(body, name), copies=self.copies))
        output = getattr(body, self.output)
        activation = None if self.activation is None else (body, self.activation)
        norm = getattr(layer, self.norm)
        return BlockWeights(inputs, out_of(output), output.bias, company=(norm,), activation=activation)

    def run(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:  # noqa: ARG002 - it takes none
        added: Tensor = getattr(layer, self.body)(getattr(layer, self.norm)(hidden))
        return hidden + added

    def skip(self, layer: Any, hidden: Tensor) -> Tensor:  # noqa: ARG002 - nothing of the layer is left
        return hidden

    def remove(self, layer: Any, bias: nn.Parameter | None) -> None:
        setattr(layer, self.norm, nn.Identity())
        setattr(layer, self.body, Constant(bias))
