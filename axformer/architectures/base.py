"""What the library needs to know of a model family: where its blocks live, who owns their weights, how to run one.

A family is an :class:`Architecture`, plain data, with a :class:`BlockLayout` for attention and one for the FFN, which
families may share. Masking, surgery, counting and the evaluators use only these and name no family. Everything around the
layers (embeddings, masks, positions, pooling, any head) always runs as transformers implements it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor, nn
from transformers import AutoModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from axformer.architectures.embedder import embedder_class
from axformer.architectures.hard_attention import ATTENTION_NAME
from axformer.architectures.heads import Head, heads_of
from axformer.architectures.slices import Slice
from axformer.errors import PlanError
from axformer.plan.blocks import Block
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan

See = Callable[[Tensor], Tensor]
"""Receives a tensor of shape (..., columns) and returns the tensor to use instead."""
Tap = Callable[[See], Callable[[], None]]
"""Registers a function on a tensor that is called whenever the tensor is computed; returns a function that removes it."""


@dataclass(frozen=True)
class PlainAttention:
    """Attention as in the original Transformer: three projections, and nothing that depends on positions."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    heads: int
    """Number of heads that remain."""
    scaling: float
    """Scaling of the scores."""
    top_k: int | None
    """K of hard attention; None if it is off."""


@dataclass(frozen=True)
class BlockWeights:
    """The weights of one attention or feed-forward block."""

    inputs: tuple[Slice, ...]
    """The slices of the input projections (with their biases and norms) that heads or neurons own."""
    output: Slice
    """The slice of the output projection that they own; where it is 0, they add nothing."""
    bias: nn.Parameter | None = None
    """The bias of the output projection, which stays as long as the block does."""
    company: tuple[nn.Module, ...] = ()
    """Modules that are useless without heads or neurons: the norm before a pre-LN block."""
    core: nn.Module | None = None
    """For attention: the module on which hard attention is switched on."""
    plain: PlainAttention | None = None
    """For plain attention; None otherwise."""
    tap: Tap | None = None
    """Taps the input of the output projection if that is not a module; None if it is."""
    activation: tuple[nn.Module, str] | None = None
    """For an FFN: the module that holds the activation function as a submodule, and its name there, if nothing else lies
    between the input and the output projection."""

    def watch(self, see: See) -> Callable[[], None]:
        """Call a function with each input of the output projection, shape (..., columns).

        All heads or neurons own equally many columns, in order. The returned function removes the hook.
        """
        if self.tap is not None:
            return self.tap(see)
        return self.output.module.register_forward_pre_hook(lambda _, inputs: (see(inputs[0]), *inputs[1:])).remove

    def keep(self, units: Sequence[int], total: int) -> None:
        """Keep some of the heads or neurons, and drop the others."""
        for part in (*self.inputs, self.output):
            part.replace(part.part(units, total))


class BlockLayout(Protocol):
    """The structure of one of the two blocks of a family's layers. Families with equal blocks share a layout."""

    def weights(self, layer: Any) -> BlockWeights:
        """The weights of a layer's block, whole or cut, unless it is removed."""

    def run(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        """Run the whole block, with residual and normalisation; shapes (batch, tokens, hidden).

        Args:
            arguments: the other arguments of the layer, by name.
        """

    def skip(self, layer: Any, hidden: Tensor) -> Tensor:
        """The output of the layer's removed block: the residual stream, with the norm if that stays."""

    def remove(self, layer: Any, bias: nn.Parameter | None) -> None:
        """Remove the block from a layer; a ``bias`` is still added."""


class AttentionLayout(BlockLayout, Protocol):
    """The structure of the attention block."""

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:
        """Inform a layer which of its ``total`` heads its projections still hold."""


def max_positions(config: Any) -> int | None:
    """The longest input is the number of positions."""
    return int(config.max_position_embeddings)


def read_first(_: Any, ids: Tensor) -> Tensor | None:
    """Model heads read the first token, ``[CLS]``."""
    return ids.new_zeros(ids.shape[:1])


def read_last(config: Any, ids: Tensor) -> Tensor | None:
    """Model heads read the last token that is not padding, or the very last one if the model has no pad token."""
    if config.pad_token_id is None:
        return ids.new_full(ids.shape[:1], ids.shape[-1] - 1)
    places = (ids != config.pad_token_id).int() * ids.new_ones(ids.shape).cumsum(dim=-1)
    last: Tensor = places.argmax(dim=-1)
    return last


def _unchanged(*_: Any) -> None:
    """Nothing to do."""


@dataclass(frozen=True)
class Architecture:
    """One model family."""

    model_type: str
    """The family's name in ``config.json``."""
    attention: AttentionLayout
    ffn: BlockLayout
    layers_of: Callable[[Any], Sequence[nn.Module]]
    """The transformer layers of a base model (one without head), bottom first."""
    intermediate_size: Callable[[Any], int] = lambda config: int(config.intermediate_size)
    """Neurons of an FFN block, from a config."""
    neurons_key: str = "intermediate_size"
    """The key of a config that says this number."""
    fewer_heads: Callable[[Any, Plan], Mapping[str, int] | None] = lambda *_: None
    """What a config says of a model whose layers have fewer heads, from the config of the whole model and the plan of the
    layers; None if no config describes it."""
    max_tokens: Callable[[Any], int | None] = max_positions
    """The longest input including special tokens, from a config; None if there is no limit."""
    read_position: Callable[[Any, Tensor], Tensor | None] = read_first
    """The position that pooling heads read, from a config and token ids (batch, tokens); None if they read several."""
    padding_side: Callable[[Any], str | None] = lambda _: "right"
    """The side of padding on which no head reads it, from a config; None if pooling heads read it on either side."""
    reads_behind_padding: tuple[Any, ...] = ()
    """Auto classes of heads that read the first token that is not padding instead of ``read_position``. Their compact models
    do not know where the padding is, and compute all positions."""
    causal: bool = False
    """Whether attention is causal."""
    returned: Callable[[Tensor], Any] = lambda hidden: hidden
    """Wraps the output as a layer's own ``forward`` returns it."""
    token_axis: int = 1
    """The token axis of the layers' inputs."""
    mixes_tokens_after: Callable[[Any], int] = lambda _: 0
    """Layers after which something other than attention mixes tokens, from a config; 0 if nothing does."""
    config_keys: tuple[str, ...] = ()
    """Keys of ``config.json`` that the family's code reads in addition to the fields of its config class."""
    older_names: Mapping[str, str] = field(default_factory=dict)
    """Parts of weights' names in compact models of earlier versions, and what they are now."""
    prepare: Callable[[Any], None] = _unchanged
    """Changes a whole model so that hard attention can be switched on and every layer is a separate module."""
    finish: Callable[[Any, Plan], None] = _unchanged
    """The last step after the layers of a prepared model are cut."""
    needs: Callable[[Any, Plan], str | None] = lambda *_: None
    """Why a model with this config cannot do without the layers that a plan drops; None if it can."""
    shorten: Callable[[Any, Plan], None] = _unchanged
    """The last step after the dropped layers were taken out of a prepared model."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by its name: models hold their family, whose functions have no names."""
        from axformer.architectures.registry import architecture_of

        return architecture_of, (self.model_type,)

    @property
    def base_class(self) -> Any:
        """The class of the family's models without a head."""
        return AutoModel._model_mapping[CONFIG_MAPPING[self.model_type]]

    @property
    def heads(self) -> tuple[Head, ...]:
        """The kinds of heads that the family has."""
        return heads_of(self.model_type, causal=self.causal)

    @property
    def without_head(self) -> Head:
        """The family's base model in the place of a head."""
        return Head(AutoModel, self.base_class)

    @property
    def embedder(self) -> Head:
        """Pooling in the place of a head."""
        return Head(AutoModel, embedder_class(self.base_class))

    @property
    def every_head(self) -> tuple[Head, ...]:
        """The kinds of heads, and pooling."""
        return *self.heads, self.embedder

    def head_of(self, model: Any) -> Head | None:
        """The kind of head of a model; None if the family does not list its class."""
        return next((head for head in self.every_head if isinstance(model, head.model_class)), None)

    def layout(self, block: Block) -> BlockLayout:
        """The layout of a block."""
        return self.ffn if block.is_ffn else self.attention

    def dimensions(self, config: Any) -> Dimensions:
        """The counts that determine the elements of a model with this config."""
        return Dimensions(
            layers=config.num_hidden_layers,
            heads=config.num_attention_heads,
            hidden_size=config.hidden_size,
            intermediate_size=self.intermediate_size(config),
        )

    def check_droppable(self, config: Any, plan: Plan) -> None:
        """Check that the model without the layers that a plan drops is one that transformers can build.

        Raises:
            PlanError: it is not.
        """
        reason = self.needs(config, plan) if plan.dropped else None
        if reason is not None:
            dropped = ", ".join(map(str, plan.dropped))
            raise PlanError(f"a {self.model_type} model cannot do without the layers {dropped}: {reason}")

    def adopt(self, model: Any) -> None:
        """Prepare a whole model for a pass: hard attention can be switched on, and every layer is a separate module."""
        if model._supports_attention_backend:
            model.config._attn_implementation = ATTENTION_NAME
        self.prepare(model)

    def layers(self, model: Any) -> Sequence[nn.Module]:
        """The transformer layers of a model with or without head, bottom first."""
        return self.layers_of(model.base_model)
