"""Sentence embedders: a family's base model whose token vectors are pooled to one vector for each text.

Their weights are those of the base model under the same names, so every loader of the base model reads them; what is done with
its output is data, in the key :data:`SPEC` of the configuration. Layers behind the pooling have files of their own.
"""

import inspect
from collections import OrderedDict
from collections.abc import Iterable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

SPEC = "axformer_embedding"
"""The key of a configuration that holds an :class:`Embedding`."""
VECTOR = "sentence_embedding"
"""The name of the output with one vector for each text, as sentence-transformers calls it."""
TOKENS = "last_hidden_state"
Mode = Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
"""How token vectors become one, by the names of sentence-transformers."""
BEHIND = "behind"
"""The name, in an embedder, of the layers behind its pooling."""
DENSE = "{}_Dense"
"""The directory of such a layer, by its place among all modules."""
DENSE_WEIGHTS = "model.safetensors"
_LEAST = 1e-9


class Dense(BaseModel):
    """A layer behind the pooling, by the keys of sentence-transformers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    in_features: StrictInt = Field(ge=1)
    out_features: StrictInt = Field(ge=1, le=1 << 16)
    bias: StrictBool
    activation_function: Literal[
        "torch.nn.modules.linear.Identity",
        "torch.nn.modules.activation.GELU",
        "torch.nn.modules.activation.ReLU",
        "torch.nn.modules.activation.SiLU",
        "torch.nn.modules.activation.Sigmoid",
        "torch.nn.modules.activation.Tanh",
    ]
    module_input_name: Literal["sentence_embedding"] = "sentence_embedding"
    module_output_name: Literal["sentence_embedding", None] = None
    use_residual: Literal[False] = False

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of its weights, by their names in its file."""
        bias = {"linear.bias": (self.out_features,)} if self.bias else {}
        return {"linear.weight": (self.out_features, self.in_features), **bias}

    def layer(self) -> nn.Module:
        """The layer, with random weights."""
        linear = nn.Linear(self.in_features, self.out_features, self.bias)
        activation = getattr(nn, self.activation_function.rpartition(".")[2])()
        return nn.Sequential(OrderedDict(linear=linear, activation=activation))


class Embedding(BaseModel):
    """How a text becomes a vector, before and after the transformer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pooling: tuple[Mode, ...] = Field(min_length=1, max_length=6)
    """Several are joined end to end."""
    dense: tuple[Dense, ...] = Field(default=(), max_length=3)
    """The layers that the pooled vector goes through."""
    normalize: bool = False
    """Whether vectors are brought to length 1."""
    dimensions: int | None = Field(default=None, ge=1)
    """The first dimensions that are used (``truncate_dim``); None for all."""
    max_length: int | None = Field(default=None, ge=1)
    """Longer texts are cut to so many tokens; None for as many as the model takes."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """What is put before a text, by name."""
    default_prompt: str | None = None
    """The name of the prompt that is used where none is named; None for no prompt."""
    similarity: Literal["cosine", "dot", "euclidean"] | None = None
    """How vectors are compared (``similarity_fn_name``); None for the cosine."""

    def prompt(self, *names: str) -> str:
        """The prompt of the first of these names that there is, or without names the default one; empty if there is none."""
        return next((self.prompts[name] for name in names or (self.default_prompt,) if name in self.prompts), "")

    def size(self, hidden: int) -> int:
        """Numbers of a vector, given those of a token's."""
        whole = self.dense[-1].out_features if self.dense else hidden * len(self.pooling)
        return min(whole, self.dimensions or whole)

    def of(self, tokens: Tensor, mask: Tensor, behind: Iterable[Any]) -> Tensor:
        """The vectors of texts, shape (texts, numbers).

        Args:
            tokens: shape (texts, tokens, hidden).
            mask: 1 for a token, 0 for padding; shape (texts, tokens).
            behind: the layers behind the pooling.
        """
        vectors = torch.cat([_pooled(mode, tokens, mask) for mode in self.pooling], dim=-1)
        for layer in behind:
            vectors = layer(vectors)
        if self.normalize:
            vectors = functional.normalize(vectors, dim=-1)
        return vectors if self.dimensions is None else vectors[:, : self.dimensions]


def spec_of(config: Any) -> Embedding | None:
    """How the model of a configuration embeds; None if it is no embedder."""
    given = getattr(config, SPEC, None)
    return None if given is None else Embedding.model_validate(given)


def _pooled(mode: Mode, tokens: Tensor, mask: Tensor) -> Tensor:
    """One vector for each text; sums are in float32 at least."""
    weights = mask.unsqueeze(-1).to(torch.promote_types(tokens.dtype, torch.float32))
    if mode == "max":
        return tokens.masked_fill(weights == 0, torch.finfo(tokens.dtype).min).amax(dim=1)
    places = weights.cumsum(dim=1)
    if mode == "cls":
        weights = weights * (places == 1)
    elif mode == "lasttoken":
        weights = weights * (places == weights.sum(dim=1, keepdim=True))
    elif mode == "weightedmean":
        weights = weights * places
    total = weights.sum(dim=1).clamp(min=_LEAST)
    return ((tokens * weights).sum(dim=1) / (total.sqrt() if mode == "mean_sqrt_len_tokens" else total)).to(
        tokens.dtype
    )


@cache
def embedder_class(family: Any) -> Any:
    """The class of a family's embedders.

    Args:
        family: the class of its models without a head.
    """

    def build(self: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        if "add_pooling_layer" in inspect.signature(family.__init__).parameters:
            kwargs["add_pooling_layer"] = False
        family.__init__(self, config, *args, **kwargs)
        self.embedding = spec = spec_of(config)
        assert spec is not None, "an embedder's configuration says how it embeds"
        self.behind = nn.ModuleList(one.layer() for one in spec.dense)
        self._keys_to_ignore_on_save |= {f"{BEHIND}.{name}" for name in self.behind.state_dict()}
        self._keys_to_ignore_on_load_missing |= {rf"^{BEHIND}\."}

    def from_pretrained(cls: Any, directory: Any, *args: Any, **kwargs: Any) -> Any:
        found = family.from_pretrained.__func__(cls, directory, *args, **kwargs)
        for place, layer in enumerate((found[0] if isinstance(found, tuple) else found).behind, start=2):
            layer.load_state_dict(load_file(Path(directory, DENSE.format(place), DENSE_WEIGHTS)))
        return found

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        ids, mask = kwargs.get("input_ids"), kwargs.get("attention_mask")
        output = family.forward(self, *args, **kwargs | {"return_dict": True})
        if mask is None:
            mask = torch.ones_like(args[0] if ids is None else ids)
        output[VECTOR] = self.embedding.of(output[TOKENS], mask, self.behind)
        return output

    forward.__signature__ = inspect.signature(family.forward)  # type: ignore[attr-defined]
    name = f"{family.__name__.removesuffix('Model')}ForSentenceEmbedding"
    body = {"__module__": __name__, "__init__": build, "forward": forward, "plain": family}
    return type(name, (family,), body | {"from_pretrained": classmethod(from_pretrained)})


def behind_of(model: Any) -> Iterable[nn.Module]:
    """The layers behind a model's pooling; none if it has none, or is no embedder."""
    return getattr(model, BEHIND, ())


def plain_class(model_class: Any) -> Any:
    """The class of transformers that reads the weights of an embedder's; any other class itself."""
    return getattr(model_class, "plain", model_class)


def pooled(model: Any, family: Any, pooling: str) -> Any:
    """An embedder with the weights of a model in memory; its head, if it has one, is left out.

    Args:
        family: the class of its family's models without a head.
    """
    config = deepcopy(model.config)
    setattr(config, SPEC, Embedding.model_validate({"pooling": (pooling,)}).model_dump())
    made = embedder_class(family)(config).to(device=model.device, dtype=model.dtype)
    weights = model.base_model.state_dict()
    made.load_state_dict({name: weights[name] for name in made.state_dict()})
    return made
