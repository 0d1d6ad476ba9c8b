"""What the library needs to know of a model family: where its blocks live, who owns their weights, how to run one.

A family is an :class:`Architecture`, plain data, with a :class:`BlockLayout` for attention and one for the FFN, which
families may share. Masking, surgery, counting and the evaluators are written against these and name no family. What stands
before, between and after the layers (embeddings, masks, positions, pooling, any head) is nobody's business here: it always
runs as transformers wrote it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn
from transformers import AutoModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from axformer.architectures.hard_attention import ATTENTION_NAME
from axformer.architectures.heads import Head, heads_of
from axformer.architectures.slices import Slice
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan

See = Callable[[Tensor], Tensor]
"""Sees a tensor of shape (..., columns) and gives what is to be computed with in its place."""
Tap = Callable[[See], Callable[[], None]]
"""Lets something see a tensor each time that it is computed, until what it gives back is called."""


@dataclass(frozen=True)
class PlainAttention:
    """Attention as in the Transformer's own paper: three projections, and nothing that depends on positions."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    heads: int
    """That are left."""
    scaling: float
    """Of the scores."""
    top_k: int | None
    """Of hard attention, where it is on."""


@dataclass(frozen=True)
class BlockWeights:
    """The weights of one attention or feed-forward block."""

    inputs: tuple[Slice, ...]
    """What heads or neurons own of the projections in (and of biases and norms that belong to them)."""
    output: Slice
    """What they own of the projection out. Where it is 0, they add nothing."""
    bias: nn.Parameter | None = None
    """The bias of the projection out, which stays while the block does."""
    company: tuple[nn.Module, ...] = ()
    """Modules that nobody needs without heads or neurons: the norm before a pre-LN block."""
    core: nn.Module | None = None
    """Of attention: the module that hard attention is switched on."""
    plain: PlainAttention | None = None
    """Of attention that is plain."""
    tap: Tap | None = None
    """How to see what comes into the projection out, where that is not a module; None where it is one."""
    activation: tuple[nn.Module, str] | None = None
    """Of an FFN: the module that holds the activation function as a module, and its name there, where nothing else stands
    between the projection in and the projection out."""

    def watch(self, see: See) -> Callable[[], None]:
        """Call a function with each input of the output projection, shape (..., columns), until the returned function is
        called. Each head or neuron owns as many columns as any other, one after the other."""
        if self.tap is not None:
            return self.tap(see)
        return self.output.module.register_forward_pre_hook(lambda _, inputs: (see(inputs[0]), *inputs[1:])).remove

    def keep(self, units: Sequence[int], total: int) -> None:
        """Keep some of the heads or neurons, and drop the others."""
        for part in (*self.inputs, self.output):
            part.replace(part.part(units, total))


class BlockLayout(Protocol):
    """How one of the two blocks of a family's layers is built. Families whose blocks are alike share one layout."""

    def weights(self, layer: Any) -> BlockWeights:
        """The weights of a layer's block that is not removed, whole or cut."""

    def run(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        """The whole block, residual and normalisation included; shapes (batch, tokens, hidden).

        Args:
            arguments: what the layer is called with, beside its input, by name.
        """

    def skip(self, layer: Any, hidden: Tensor) -> Tensor:
        """What is left where the block is removed."""

    def remove(self, layer: Any, bias: nn.Parameter | None) -> None:
        """Take the block out of a layer for good; a ``bias`` is what it still adds."""


class AttentionLayout(BlockLayout, Protocol):
    """How the attention block is built."""

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:
        """Tell a layer which of its ``total`` heads its projections still hold."""


def max_positions(config: Any) -> int | None:
    """The longest input is the number of positions."""
    return int(config.max_position_embeddings)


def read_first(_: Any, ids: Tensor) -> Tensor | None:
    """Heads read the first token, ``[CLS]``."""
    return ids.new_zeros(ids.shape[:1])


def read_last(config: Any, ids: Tensor) -> Tensor | None:
    """Heads read the last token that is not padding; the very last where the model knows no pad token."""
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
    """Neurons of a feed-forward block, from a configuration."""
    max_tokens: Callable[[Any], int | None] = max_positions
    """The longest input that models take, special tokens included, from a configuration; None if there is no limit."""
    read_position: Callable[[Any, Tensor], Tensor | None] = read_first
    """Which position heads that pool read, from a configuration and token ids (batch, tokens); None if they read more."""
    reads_behind_padding: tuple[Any, ...] = ()
    """Auto classes of heads that read the first token that is not padding, not that of ``read_position``; their compact models,
    which are not told where padding stands, compute all positions."""
    causal: bool = False
    """Whether attention looks back only."""
    returned: Callable[[Tensor], Any] = lambda hidden: hidden
    """What a layer's own ``forward`` gives back around its output."""
    token_axis: int = 1
    """Where tokens are in the shape of what layers take."""
    mixes_tokens_after: Callable[[Any], int] = lambda _: 0
    """Layers after which something beside attention mixes tokens, from a configuration; 0 where nothing does."""
    config_keys: tuple[str, ...] = ()
    """Keys of ``config.json`` that the family's code reads beside the fields of its configuration class."""
    int8: bool = True
    """Whether its projections are linear modules, which int8 quantization can reach."""
    prepare: Callable[[Any], None] = _unchanged
    """Change a whole model so that hard attention can be switched on in it and every layer is a module of its own."""
    finish: Callable[[Any, Plan], None] = _unchanged
    """What is left to do after the layers of a prepared model were cut."""

    @property
    def base_class(self) -> Any:
        """The class of the family's models without a head."""
        return AutoModel._model_mapping[CONFIG_MAPPING[self.model_type]]

    @property
    def heads(self) -> tuple[Head, ...]:
        """The kinds of heads that the family has."""
        return heads_of(self.model_type, causal=self.causal)

    def head_of(self, model: Any) -> Head | None:
        """The kind of head that a model has; None for a class that the family does not name."""
        return next((head for head in self.heads if isinstance(model, head.model_class)), None)

    def layout(self, block: int) -> BlockLayout:
        """The layout of a block by its number: layer ``l`` has attention block ``2l`` and FFN block ``2l + 1``."""
        return self.ffn if block % 2 else self.attention

    def dimensions(self, config: Any) -> Dimensions:
        """The counts that decide which elements a model with this configuration has."""
        return Dimensions(
            layers=config.num_hidden_layers,
            heads=config.num_attention_heads,
            hidden_size=config.hidden_size,
            intermediate_size=self.intermediate_size(config),
        )

    def adopt(self, model: Any) -> None:
        """Make a whole model ready for a pass: hard attention can be switched on, and every layer is a module of its own."""
        if model._supports_attention_backend:
            model.config._attn_implementation = ATTENTION_NAME
        self.prepare(model)

    def layers(self, model: Any) -> Sequence[nn.Module]:
        """The transformer layers of a model with or without head, bottom first."""
        return self.layers_of(model.base_model)
