"""What the library needs to know of a model family: where its blocks live and how to run them one at a time.

One small adapter a family implements :class:`Architecture`, with a :class:`LayerLayout` that families may share. Masking,
surgery and the evaluators are written against these and name no family.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

from axformer.elements import Dimensions


@dataclass(frozen=True)
class AttentionParts:
    """The modules of one attention block."""

    core: nn.Module
    """The module that calls the attention function."""
    inputs: tuple[nn.Linear, ...]
    """Query, key and value projections: head ``h`` owns rows ``h * head_size`` to ``(h + 1) * head_size``."""
    output: nn.Linear
    """The output projection: head ``h`` owns the same columns."""


@dataclass(frozen=True)
class FeedForwardParts:
    """The modules of one feed-forward block."""

    inputs: tuple[nn.Linear, ...]
    """Projections up (and gate, where there is one): a row a neuron."""
    output: nn.Linear
    """The projection down: a column a neuron."""


class LayerLayout(Protocol):
    """How a family's layers are built. Families whose layers are alike share one layout."""

    def attention_parts(self, layer: nn.Module) -> AttentionParts:
        """The modules of a layer's attention block."""

    def ffn_parts(self, layer: nn.Module) -> FeedForwardParts:
        """The modules of a layer's feed-forward block."""

    def run_attention(self, layer: nn.Module, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """A whole attention block, residual and normalisation included; shapes (batch, tokens, hidden)."""

    def run_ffn(self, layer: nn.Module, hidden: Tensor) -> Tensor:
        """A whole feed-forward block, residual and normalisation included; shapes (batch, tokens, hidden)."""

    def skip_attention(self, layer: nn.Module, hidden: Tensor) -> Tensor:
        """What is left where the attention block is removed."""

    def skip_ffn(self, layer: nn.Module, hidden: Tensor) -> Tensor:
        """What is left where the feed-forward block is removed."""

    def remove_attention(self, layer: nn.Module, bias: nn.Parameter | None) -> None:
        """Take the attention block out of a layer for good; a ``bias`` is what it still adds."""

    def remove_ffn(self, layer: nn.Module, bias: nn.Parameter | None) -> None:
        """Take the feed-forward block out of a layer for good; a ``bias`` is what it still adds."""

    def set_head_count(self, layer: nn.Module, heads: int) -> None:
        """Tell a layer how many heads its projections hold now."""


class Architecture(Protocol):
    """One model family: where its layers are, and what comes before and after them."""

    @property
    def model_type(self) -> str:
        """The family's name in ``config.json``."""

    @property
    def model_class(self) -> Any:
        """The transformers class of the family's sequence classifiers."""

    @property
    def causal(self) -> bool:
        """Whether its attention looks back only."""

    @property
    def layout(self) -> LayerLayout:
        """How its layers are built."""

    def dimensions(self, config: Any) -> Dimensions:
        """The counts that decide which elements a model with this configuration has."""

    def max_tokens(self, config: Any) -> int | None:
        """The longest input that the model takes, special tokens included; null where it takes any."""

    def layers(self, model: nn.Module) -> Sequence[nn.Module]:
        """The transformer layers, bottom first."""

    def embed(self, model: nn.Module, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        """The input of the first block, shape (batch, tokens, hidden), and the mask that attention blocks add."""

    def read_by_head(self, hidden: Tensor) -> Tensor:
        """The positions that the head reads, of shape (batch, positions, hidden); nobody needs the last FFN elsewhere."""

    def head(self, model: nn.Module, hidden: Tensor) -> Tensor:
        """The model's output, shape (batch, labels), from the last block's output at those positions."""
