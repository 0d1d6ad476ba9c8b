"""GPT-2: pre-LN and causal, with transposed projections (``Conv1D``) of which one holds queries, keys and values."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import Architecture, Block, read_last
from axformer.architectures.removed import Constant, ConstantDecoderAttention
from axformer.architectures.slices import into, out_of


class GPT2Layout:
    """Layers as in ``GPT2Block``; see :class:`axformer.architectures.base.LayerLayout`."""

    def attention(self, layer: Any) -> Block:
        core = layer.attn
        inputs = into(core.c_attn, copies=3)
        return Block(inputs, out_of(core.c_proj), core.c_proj.bias, company=(layer.ln_1,), core=core)

    def ffn(self, layer: Any) -> Block:
        mlp = layer.mlp
        return Block(into(mlp.c_fc), out_of(mlp.c_proj), mlp.c_proj.bias, company=(layer.ln_2,))

    def run_attention(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        added: Tensor = layer.attn(layer.ln_1(hidden), attention_mask=arguments["attention_mask"])[0]
        return added + hidden

    def run_ffn(self, layer: Any, hidden: Tensor) -> Tensor:
        added: Tensor = layer.mlp(layer.ln_2(hidden))
        return hidden + added

    def skip_attention(self, layer: Any, hidden: Tensor) -> Tensor:  # noqa: ARG002 - nothing of the layer is left
        return hidden

    def skip_ffn(self, layer: Any, hidden: Tensor) -> Tensor:  # noqa: ARG002 - nothing of the layer is left
        return hidden

    def returned(self, hidden: Tensor) -> Any:
        return hidden

    def remove_attention(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.ln_1, layer.attn = nn.Identity(), ConstantDecoderAttention(bias, layer.attn.layer_idx)

    def remove_ffn(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.ln_2, layer.mlp = nn.Identity(), Constant(bias)

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:  # noqa: ARG002 - all heads are alike
        core = layer.attn
        core.num_heads = len(heads)
        core.split_size = len(heads) * core.head_dim


def _intermediate_size(config: Any) -> int:
    return int(config.n_inner or 4 * config.hidden_size)


GPT2 = Architecture(
    "gpt2",
    GPT2Layout(),
    layers_of=lambda base: base.h,
    intermediate_size=_intermediate_size,
    read_position=read_last,
    causal=True,
)
