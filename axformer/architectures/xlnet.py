"""XLNet: BERT's layers with relative attention in bare parameters, tokens before the batch in every shape.

Only the content stream is known here; the query stream is for pretraining and generation.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import Architecture, BlockWeights, See, read_first
from axformer.architectures.hard_attention import HardAttentionDropout
from axformer.architectures.removed import ResidualNorm
from axformer.architectures.slices import Slice, into, out_of

HEAD_AXES = {"q": 1, "k": 1, "v": 1, "r": 1, "r_r_bias": 0, "r_s_bias": 0, "r_w_bias": 0, "seg_embed": 1}
"""The head axis of each attention parameter; ``o`` is the output projection."""
ARGUMENTS = ("attn_mask_h", "attn_mask_g", "r", "seg_mat", "mems")


class XLNetAttention:
    """See :class:`axformer.architectures.base.AttentionLayout`."""

    def weights(self, layer: Any) -> BlockWeights:
        module = layer.rel_attn
        inputs = tuple(Slice(module, name, axis) for name, axis in HEAD_AXES.items())
        return BlockWeights(inputs, Slice(module, "o", 1), core=module.dropout, tap=partial(_tap, module))

    def run(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        output: Tensor = layer.rel_attn(hidden, None, **{name: arguments[name] for name in ARGUMENTS})[0]
        return output

    def skip(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.rel_attn.layer_norm(hidden)
        return normed

    def remove(self, layer: Any, bias: nn.Parameter | None) -> None:  # noqa: ARG002 - it never has one
        layer.rel_attn = _NoAttention(layer.rel_attn.layer_norm, None)

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:  # noqa: ARG002 - all heads are alike
        layer.rel_attn.n_head = len(heads)


def _tap(module: Any, see: See) -> Callable[[], None]:
    """Tap the contexts of all heads, shape (tokens, batch, heads * size), before the output projection."""

    def post_attention(hidden: Tensor, contexts: Tensor, residual: bool = True) -> Tensor:
        seen = see(contexts.flatten(start_dim=2)).view_as(contexts)
        output: Tensor = type(module).post_attention(module, hidden, seen, residual)
        return output

    module.post_attention = post_attention
    return lambda: delattr(module, "post_attention")


class XLNetFeedForward:
    """See :class:`axformer.architectures.base.BlockLayout`."""

    def weights(self, layer: Any) -> BlockWeights:
        return BlockWeights(into(layer.ff.layer_1), out_of(layer.ff.layer_2), layer.ff.layer_2.bias)

    def run(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:  # noqa: ARG002 - it takes none
        output: Tensor = layer.ff(hidden)
        return output

    def skip(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.ff.layer_norm(hidden)
        return normed

    def remove(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.ff = ResidualNorm(layer.ff.layer_norm, bias)


class _NoAttention(ResidualNorm):
    """Replaces ``XLNetRelativeAttention``, with the same signature."""

    def forward(self, hidden: Tensor, *_: Any, **__: Any) -> Any:
        return super().forward(hidden), None


_SIDES = {"first": "right", "last": "left", "cls_index": "left"}
"""Where padding goes by what the head reads; nobody says where its ``cls_index`` is, so it reads the last token too."""


def _read_position(config: Any, ids: Tensor) -> Tensor | None:
    if _SIDES.get(config.summary_type) == "left":
        return ids.new_full(ids.shape[:1], ids.shape[-1] - 1)
    return read_first(config, ids) if config.summary_type == "first" else None


XLNET = Architecture(
    "xlnet",
    XLNetAttention(),
    XLNetFeedForward(),
    layers_of=lambda base: base.layer,
    intermediate_size=lambda config: int(config.d_inner),
    neurons_key="d_inner",
    max_tokens=lambda _: None,
    read_position=_read_position,
    padding_side=lambda config: _SIDES.get(config.summary_type),
    returned=lambda hidden: (hidden, None),
    token_axis=0,
    prepare=lambda model: HardAttentionDropout.put_into(layer.rel_attn for layer in model.base_model.layer),
)
