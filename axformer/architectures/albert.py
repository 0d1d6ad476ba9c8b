"""ALBERT: many layers share one layer's weights. Every use is a separate element.

For a pass, the uses become layers that share their weights. Afterwards only the weights that some use still needs remain, and
each use takes its rows and columns from them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.modeling_outputs import BaseModelOutput

from axformer.architectures.base import Architecture, BlockWeights
from axformer.architectures.removed import Constant
from axformer.architectures.slices import Slice, into, out_of
from axformer.errors import CheckpointError
from axformer.plan.plan import LayerPlan, Plan, kept_neurons


class AlbertAttention:
    """See :class:`axformer.architectures.base.AttentionLayout`."""

    def weights(self, layer: Any) -> BlockWeights:
        core = layer.attention
        inputs = (*into(core.query), *into(core.key), *into(core.value))
        return BlockWeights(inputs, out_of(core.dense), core.dense.bias, core=core)

    def run(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        output: Tensor = layer.attention(hidden, arguments["attention_mask"])[0]
        return output

    def skip(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.attention.LayerNorm(hidden)
        return normed

    def remove(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.attention = UsedNorm(layer.attention.LayerNorm, None if bias is None else layer.attention.dense)

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:  # noqa: ARG002 - all heads are alike
        layer.attention.num_attention_heads = len(heads)
        layer.attention.all_head_size = len(heads) * layer.attention.attention_head_size


class AlbertFeedForward:
    """See :class:`axformer.architectures.base.BlockLayout`."""

    def weights(self, layer: Any) -> BlockWeights:
        return BlockWeights(into(layer.ffn), out_of(layer.ffn_output), layer.ffn_output.bias)

    def run(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:  # noqa: ARG002 - it takes none
        return self.skip(layer, layer.ff_chunk(hidden) + hidden)

    def skip(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.full_layer_layer_norm(hidden)
        return normed

    def remove(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.ffn = nn.Identity()
        layer.ffn_output = Constant(None) if bias is None else SharedBias(layer.ffn_output)


class _Unrolled(nn.Module):
    """An ``AlbertTransformer`` whose layers are separate modules around the shared weights."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        config = encoder.config
        self.embedding_hidden_mapping_in = encoder.embedding_hidden_mapping_in
        self.albert_layer_groups = encoder.albert_layer_groups
        self.owners = _owners(config.num_hidden_layers, config.num_hidden_groups)
        self.uses = nn.ModuleList(_with_the_same_weights(self.owner(use), config) for use in range(len(self.owners)))

    def owner(self, use: int) -> Any:
        """The layer that owns the weights of a use."""
        group: Any = self.albert_layer_groups[self.owners[use]]
        return group.albert_layers[0]

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None, **arguments: Any) -> BaseModelOutput:
        hidden = self.embedding_hidden_mapping_in(hidden_states)
        for use in self.uses:
            hidden = use(hidden, attention_mask, **arguments)
        return BaseModelOutput(last_hidden_state=hidden)


def _owners(uses: int, groups: int) -> list[int]:
    """The group whose weights each use takes."""
    return [use * groups // uses for use in range(uses)]


def _with_the_same_weights(layer: nn.Module, config: Any) -> nn.Module:
    """A copy that shares the model's weights and its config, which selects the attention implementation."""
    return deepcopy(layer, {id(shared): shared for shared in (*layer.parameters(), config)})


def _prepare(model: Any) -> None:
    base = model.base_model
    if base.config.inner_group_num != 1:
        raise CheckpointError(f"ALBERT with inner_group_num={base.config.inner_group_num} is not supported, 1 is")
    base.encoder = _Unrolled(base.encoder)


def _finish(model: Any, plan: Plan) -> None:
    """Cut the weights to what any use needs, and make the uses take their parts from them."""
    encoder: _Unrolled = model.base_model.encoder
    uses = defaultdict(list)
    for use, layer_plan in enumerate(plan.layers):
        uses[encoder.owners[use]].append((encoder.uses[use], layer_plan))
    dimensions = ALBERT.dimensions(model.config)
    for group, members in uses.items():
        owner: Any = encoder.albert_layer_groups[group].albert_layers[0]
        _share_attention(owner, members, dimensions.heads)
        _share_ffn(owner, members, dimensions.intermediate_size)


def _share_attention(owner: Any, uses: Sequence[tuple[Any, LayerPlan]], total: int) -> None:
    union = sorted({head for _, plan in uses for head in plan.heads})
    block = ALBERT.attention.weights(owner)
    _cut_or_empty(block, union, total, any(plan.attention for _, plan in uses))
    for use, plan in uses:
        if not plan.heads:
            use.attention = UsedNorm(
                Shared(owner.attention.LayerNorm), owner.attention.dense if plan.attention else None
            )
            continue
        places = [union.index(head) for head in plan.heads]
        for name in ("query", "key", "value"):
            part = Slice(getattr(owner.attention, name), "weight", 0)
            setattr(use.attention, name, SharedLinear(part, places, len(union)))
        use.attention.dense = SharedLinear(block.output, places, len(union))
        use.attention.LayerNorm = Shared(owner.attention.LayerNorm)


def _share_ffn(owner: Any, uses: Sequence[tuple[Any, LayerPlan]], total: int) -> None:
    union = sorted({neuron for _, plan in uses for neuron in kept_neurons(plan)})
    block = ALBERT.ffn.weights(owner)
    _cut_or_empty(block, union, total, any(plan.ffn for _, plan in uses))
    rank = {neuron: place for place, neuron in enumerate(union)}
    for use, plan in uses:
        places = [rank[neuron] for neuron in kept_neurons(plan)]
        if places:
            use.ffn = SharedLinear(block.inputs[0], places, len(union))
            use.ffn_output = SharedLinear(block.output, places, len(union))
        elif plan.ffn:
            use.ffn_output = SharedBias(owner.ffn_output)
        use.full_layer_layer_norm = Shared(owner.full_layer_layer_norm)


def _cut_or_empty(block: BlockWeights, units: Sequence[int], total: int, is_bias_kept: bool) -> None:
    """Keep these units of the weights; without any, only the bias remains if some use still adds it."""
    if units:
        block.keep(units, total)
        return
    for part in (*block.inputs, block.output):
        setattr(part.module, part.name, None)
    if not is_bias_kept:
        block.output.module.bias = None  # type: ignore[assignment]


def _needs(config: Any, plan: Plan) -> str | None:
    """The uses that are left must share their weights as transformers lets that many uses share them."""
    owners = _owners(config.num_hidden_layers, config.num_hidden_groups)
    left = [owners[use] for use in plan.remaining]
    groups = sorted(set(left))
    if [groups.index(group) for group in left] == _owners(len(left), len(groups)):
        return None
    return (
        f"its {config.num_hidden_layers} layers share the weights of {config.num_hidden_groups} groups, and those that are "
        "left do not share them evenly"
    )


def _shorten(model: Any, plan: Plan) -> None:
    """Drop the groups that no use is left of."""
    encoder: _Unrolled = model.base_model.encoder
    left = [encoder.owners[use] for use in plan.remaining]
    groups = sorted(set(left))
    encoder.albert_layer_groups = nn.ModuleList(encoder.albert_layer_groups[group] for group in groups)
    encoder.owners = [groups.index(group) for group in left]
    model.config.num_hidden_groups = len(groups)


ALBERT = Architecture(
    "albert",
    AlbertAttention(),
    AlbertFeedForward(),
    layers_of=lambda base: base.encoder.uses,
    prepare=_prepare,
    finish=_finish,
    needs=_needs,
    shorten=_shorten,
)


class Shared(nn.Module):
    """Calls a module that belongs to another module."""

    def __init__(self, owner: nn.Module) -> None:
        super().__init__()
        self._owner = (owner,)  # in a tuple, so that it is not registered as a submodule

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the owner's output."""
        output: Tensor = self._owner[0](hidden)
        return output


class SharedLinear(nn.Module):
    """A linear module that uses another's weight, or some of its rows or columns."""

    def __init__(self, part: Slice, units: Sequence[int], total: int) -> None:
        """Use the part of a linear module's weight that some of its ``total`` units own."""
        super().__init__()
        self._owner = (part.module,)
        self._axis = part.axis
        self._entries = None if len(units) == total else part.entries(units, total).tolist()

    @property
    def weight(self) -> Tensor:
        """Shape (outputs, inputs)."""
        owner: Any = self._owner[0]
        weight: Tensor = owner.weight
        return weight if self._entries is None else weight.index_select(self._axis, self._places)

    @property
    def bias(self) -> Tensor | None:
        """Shape (outputs,)."""
        owner: Any = self._owner[0]
        bias: Tensor | None = owner.bias
        return bias if bias is None or self._entries is None or self._axis == 1 else bias[self._places]

    @property
    def _places(self) -> Tensor:
        owner: Any = self._owner[0]
        return torch.tensor(self._entries, device=owner.weight.device)

    def forward(self, hidden: Tensor) -> Tensor:
        """The linear map; shapes (..., inputs) to (..., outputs)."""
        return functional.linear(hidden, self.weight, self.bias)


class SharedBias(nn.Module):
    """Replaces an emptied projection, which still adds the bias of another module."""

    def __init__(self, owner: nn.Module) -> None:
        super().__init__()
        self._owner = (owner,)

    def forward(self, *_: Any, **__: Any) -> Tensor:
        """Return the bias for any input."""
        owner: Any = self._owner[0]
        bias: Tensor = owner.bias
        return bias


class UsedNorm(nn.Module):
    """Replaces a post-LN attention block: LayerNorm, with the bias of an emptied projection inside it."""

    def __init__(self, norm: nn.Module, biased: nn.Module | None) -> None:
        super().__init__()
        self.LayerNorm = norm
        self._biased = (biased,)

    def forward(self, hidden: Tensor, *_: Any, **__: Any) -> tuple[Tensor, None]:
        """The output and no probabilities; shapes (batch, tokens, hidden)."""
        biased: Any = self._biased[0]
        return self.LayerNorm(hidden if biased is None else hidden + biased.bias), None
