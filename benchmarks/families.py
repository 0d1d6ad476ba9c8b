"""Small models of many families: the same size, each as its family builds it.

Hubs that hold pre-trained weights are out of reach on some machines; models of this size learn a topic task from scratch in
minutes. The size is four layers of four heads, 128 wide, and a vocabulary of 8,000.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from transformers import (
    AlbertTokenizer,
    AutoConfig,
    BertTokenizer,
    DebertaV2Tokenizer,
    DistilBertTokenizer,
    GPT2Tokenizer,
    MPNetTokenizer,
    Qwen2Tokenizer,
    RobertaTokenizer,
    XLNetTokenizer,
)

LAYERS = 4
HEADS = 4
HIDDEN = 128
INTERMEDIATE = 512
VOCABULARY = 8000
POSITIONS = 128
"""Longest input in tokens."""
_KEY_VALUE_HEADS = 2
_LOCAL_WINDOW = 16
"""ModernBERT's local layers look this far in all, so that they are local on a short text too."""
_BUCKETS = 32
"""DeBERTa's relative positions, a quarter of the longest input, as in the published models."""
_PADDED_POSITIONS = POSITIONS + 8
"""RoBERTa and MPNet count positions from the padding token's index plus one."""

_BERT_NAMES = {"layers": "num_hidden_layers", "heads": "num_attention_heads", "hidden": "hidden_size",
               "intermediate": "intermediate_size", "positions": "max_position_embeddings"}  # fmt: skip
_DISTILBERT_NAMES = {"layers": "n_layers", "heads": "n_heads", "hidden": "dim", "intermediate": "hidden_dim",
                     "positions": "max_position_embeddings"}  # fmt: skip
_GPT2_NAMES = {"layers": "n_layer", "heads": "n_head", "hidden": "n_embd", "intermediate": "n_inner",
               "positions": "n_positions"}  # fmt: skip
_XLNET_NAMES = {"layers": "n_layer", "heads": "n_head", "hidden": "d_model", "intermediate": "d_inner"}
_SIZE = {"layers": LAYERS, "heads": HEADS, "hidden": HIDDEN, "intermediate": INTERMEDIATE, "positions": POSITIONS}
_SPECIAL = ("pad", "bos", "eos", "cls", "sep", "mask")
_PADDING = "<|pad|>"


@dataclass(frozen=True)
class Family:
    """What makes a family's model of this size and its tokenizer."""

    tokenizer: Any
    """A tokenizer class whose way of cutting words is trained anew on the texts."""
    names: Mapping[str, str] = field(default_factory=lambda: _BERT_NAMES)
    """How the family's configuration calls the sizes."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that the size does not tell."""


FAMILIES: Mapping[str, Family] = {
    "distilbert": Family(DistilBertTokenizer, _DISTILBERT_NAMES),
    "mpnet": Family(MPNetTokenizer, settings={"max_position_embeddings": _PADDED_POSITIONS}),
    "albert": Family(AlbertTokenizer, settings={"embedding_size": HIDDEN // 2}),
    "xlnet": Family(XLNetTokenizer, _XLNET_NAMES),
    "deberta-v2": Family(
        DebertaV2Tokenizer,
        settings={
            "relative_attention": True,
            "position_buckets": _BUCKETS,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_biased_input": False,
        },
    ),
    "modernbert": Family(
        RobertaTokenizer,
        settings={
            "local_attention": _LOCAL_WINDOW,
            "layer_types": ["full_attention", "sliding_attention"] * (LAYERS // 2),
        },
    ),
    "gpt2": Family(GPT2Tokenizer, _GPT2_NAMES),
    "llama": Family(GPT2Tokenizer, settings={"num_key_value_heads": _KEY_VALUE_HEADS}),
    "qwen3": Family(Qwen2Tokenizer, settings={"num_key_value_heads": _KEY_VALUE_HEADS, "head_dim": HIDDEN // HEADS}),
    "roberta": Family(RobertaTokenizer, settings={"max_position_embeddings": _PADDED_POSITIONS, "type_vocab_size": 1}),
    "electra": Family(BertTokenizer, settings={"embedding_size": HIDDEN}),
}


def family_named(name: str) -> Family:
    """The family with this name.

    Raises:
        ValueError: there is none.
    """
    if name not in FAMILIES:
        raise ValueError(f"family '{name}' is unknown; there are {', '.join(FAMILIES)}")
    return FAMILIES[name]


def new_tokenizer(family: str, texts: Iterable[str], vocabulary: int = VOCABULARY) -> Any:
    """The family's tokenizer with a vocabulary learned from ``texts``, and always with a token to pad with."""
    tokenizer = family_named(family).tokenizer().train_new_from_iterator(texts, vocabulary)
    if tokenizer.pad_token is None:
        tokenizer.add_special_tokens({"pad_token": _PADDING})
    tokenizer.model_max_length = POSITIONS
    return tokenizer


def new_config(family: str, tokenizer: Any, head: Mapping[str, Any]) -> Any:
    """The configuration of the family's small model for a tokenizer.

    Args:
        family: name in ``FAMILIES``.
        tokenizer: gives the size of the vocabulary and the indices of the special tokens.
        head: what a task wants of the configuration.
    """
    known = family_named(family)
    sizes = {name: _SIZE[size] for size, name in known.names.items()}
    special = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in _SPECIAL}
    settings = {"vocab_size": len(tokenizer), **sizes, **special, **known.settings, **head}
    return AutoConfig.for_model(family, **settings)
