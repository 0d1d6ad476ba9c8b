"""Which files a checkpoint consists of: weights as safetensors, configuration and tokenizer as JSON, plain text or pieces.

Nothing that can carry code (Python, pickles) is ever asked for or opened, whatever lies beside these.
"""

import re

CONFIG = "config.json"
ADAPTER_CONFIG = "adapter_config.json"
"""Lies beside an adapter, which is not a checkpoint; only looked for."""
WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
TOKENIZER_OBJECTS = (TOKENIZER_CONFIG, "special_tokens_map.json", "added_tokens.json")
"""JSON files of a tokenizer whose values are arguments of its class."""
TOKENIZER_TABLES = (TOKENIZER, "vocab.json", "vocab.txt", "merges.txt")
"""Files of a tokenizer that are tables."""
SENTENCEPIECE_MODELS = ("spm.model", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
"""Files of a tokenizer that are protocol buffers; read where ``tokenizer.json`` is missing."""
CHAT_TEMPLATE = "chat_template.jinja"
GENERATION_CONFIG = "generation_config.json"
COMPANIONS = (CHAT_TEMPLATE, GENERATION_CONFIG)
"""Files that say nothing of the model and go along into its results."""
KNOWN_NAMES = (
    *(CONFIG, WEIGHTS, WEIGHTS_INDEX),
    *(*TOKENIZER_OBJECTS, *TOKENIZER_TABLES, *SENTENCEPIECE_MODELS, *COMPANIONS),
)
"""Files that have one name everywhere."""

_SHARD = re.compile(r"[A-Za-z0-9][\w.-]{0,127}\.safetensors", re.ASCII)


def is_checkpoint_file(name: str) -> bool:
    """Whether a file of this base name may be part of a checkpoint."""
    return name in KNOWN_NAMES or is_shard(name)


def is_shard(name: str) -> bool:
    """Whether this may be the base name of a file of weights."""
    return _SHARD.fullmatch(name) is not None
