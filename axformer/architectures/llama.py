"""Llama and Qwen3: causal, pre-LN with RMSNorm, rotary positions, gated FFNs, and query heads that share keys and values.

A head is a query head. Its key/value head is removed with the last query head that shares it. If the remaining query heads no
longer share evenly, keys and values are expanded to one for each of them.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor

from axformer.architectures.base import Architecture, read_last
from axformer.architectures.pre_norm import PreNormAttention, PreNormFeedForward
from axformer.architectures.slices import Slice, into
from axformer.plan.plan import Plan


def _inputs(attention: Any) -> tuple[Slice, ...]:
    share = attention.num_key_value_groups
    return (*into(attention.q_proj), *into(attention.k_proj, share=share), *into(attention.v_proj, share=share))


def _keep_heads(attention: Any, heads: Sequence[int], total: int) -> None:  # noqa: ARG001 - groups say it all
    shared = Counter(head // attention.num_key_value_groups for head in heads)
    if len(set(shared.values())) == 1:
        attention.num_key_value_groups = shared.most_common(1)[0][1]
        return
    owners = [list(shared).index(head // attention.num_key_value_groups) for head in heads]
    attention.num_key_value_groups = 1
    attention.forward = partial(_attend, attention, owners)


def _attend(attention: Any, owners: Sequence[int], *args: Any, **kwargs: Any) -> Any:
    """The attention's own ``forward``, in which each query head has the key/value head that it shares.

    It runs on a stand-in for the module, so that the projections themselves stay those of the family, by type and by name:
    adapters, quantizers and converters look for these.
    """
    handing = {name: partial(_handed_out, attention._modules[name], owners, attention.head_dim) for name in _SHARED}
    stand_in = object.__new__(type(attention))
    stand_in.__dict__ = attention.__dict__ | {"_modules": attention._modules | handing}
    return type(attention).forward(stand_in, *args, **kwargs)


_SHARED = ("k_proj", "v_proj")


def _handed_out(projection: Any, owners: Sequence[int], head_size: int, hidden: Tensor) -> Tensor:
    heads: Tensor = projection(hidden).unflatten(-1, (-1, head_size))
    return heads[..., owners, :].flatten(start_dim=-2)


def _fewer_heads(config: Any, plan: Plan) -> dict[str, int] | None:
    """The head size stands in the config, so there may be any number of heads, if they share keys and values evenly."""
    share = config.num_attention_heads // config.num_key_value_heads
    shared = [Counter(head // share for head in layer.heads) for layer in plan.layers]
    if len({(len(owners), heads) for owners in shared for heads in owners.values()}) > 1:
        return None
    return {"num_attention_heads": shared[0].total(), "num_key_value_heads": len(shared[0])}


def _max_tokens(config: Any) -> int:
    """The positions, or those that scaling makes of them: their number in the config is that after scaling for ``llama3``, and
    before it for most others. With ``dynamic``, what is computed for a longer row depends on the rows before it."""
    rope, positions = config.rope_parameters or {}, int(config.max_position_embeddings)
    if rope.get("rope_type", "default") in ("default", "llama3", "dynamic"):
        return positions
    return max(positions, int((rope.get("original_max_position_embeddings") or positions) * (rope.get("factor") or 1)))


def _family(model_type: str, head_norms: tuple[str, ...] = ()) -> Architecture:
    attention = PreNormAttention(
        norm="input_layernorm",
        body="self_attn",
        inputs=_inputs,
        output="o_proj",
        takes=("attention_mask", "position_embeddings"),
        keep=_keep_heads,
        head_norms=head_norms,
        causal=True,
    )
    ffn = PreNormFeedForward("post_attention_layernorm", inputs=("gate_proj", "up_proj"), output="down_proj")
    return Architecture(
        model_type,
        attention,
        ffn,
        layers_of=lambda base: base.layers,
        fewer_heads=_fewer_heads,
        max_tokens=_max_tokens,
        read_position=read_last,
        causal=True,
        config_keys=("is_causal",),
        older_names={f"{name}.projection": name for name in _SHARED},
    )


LLAMA_FAMILIES = (_family("llama"), _family("qwen3", head_norms=("q_norm", "k_norm")))
