"""The files of a checkpoint: weights as safetensors, config and tokenizer as JSON, plain text or SentencePiece models.

Files that can contain code (Python, pickles) are never requested or opened.
"""

import re

CONFIG = "config.json"
ADAPTER_CONFIG = "adapter_config.json"
"""Marks an adapter, which is not a checkpoint, nor beside one; only its presence is checked."""
WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
TOKENIZER_OBJECTS = (TOKENIZER_CONFIG, "special_tokens_map.json", "added_tokens.json")
"""JSON files of a tokenizer that hold arguments of its class."""
TOKENIZER_TABLES = (TOKENIZER, "vocab.json", "vocab.txt", "merges.txt")
"""Files of a tokenizer that are tables."""
SENTENCEPIECE_MODELS = ("spm.model", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
"""Tokenizer files that are protocol buffers; read if ``tokenizer.json`` is missing."""
CHAT_TEMPLATE = "chat_template.jinja"
GENERATION_CONFIG = "generation_config.json"
MODULES = "modules.json"
SENTENCE_CONFIG = "config_sentence_transformers.json"
SENTENCE_LIMITS = "sentence_bert_config.json"
SENTENCES = (MODULES, SENTENCE_CONFIG, SENTENCE_LIMITS)
"""Files of sentence-transformers, which say how a text becomes a vector."""
POOLING = "1_Pooling/config.json"
"""The settings of its pooling."""
MODULE_FILES = (POOLING, *(f"{place}_Dense/{name}" for place in (2, 3, 4) for name in (CONFIG, WEIGHTS)))
"""What lies in directories of its own: the pooling, and layers behind it."""
COMPANIONS = (CHAT_TEMPLATE, GENERATION_CONFIG)
"""Files that do not describe the model and are copied into its results."""
KNOWN_NAMES = (
    *(CONFIG, WEIGHTS, WEIGHTS_INDEX, ADAPTER_CONFIG),
    *(*TOKENIZER_OBJECTS, *TOKENIZER_TABLES, *SENTENCEPIECE_MODELS, *COMPANIONS, *SENTENCES, *MODULE_FILES),
)
"""Files with fixed names."""

_MODULE = re.compile(r"[1-9]_(Pooling|Normalize|Dense|Dropout|LayerNorm|WeightedLayerPooling)")
_SHARD = re.compile(r"[A-Za-z0-9][\w.-]{0,127}\.safetensors", re.ASCII)


def name_in_checkpoint(path: str) -> str:
    """The name of a file in a checkpoint, given its path, of which the directories above the checkpoint may be a part.

    Only what lies in the directory of a module of sentence-transformers has two parts.
    """
    parts = path.split("/")
    return "/".join(parts[-2 if len(parts) > 1 and _MODULE.fullmatch(parts[-2]) else -1 :])


def is_checkpoint_file(name: str) -> bool:
    """Whether a file of this name may be part of a checkpoint."""
    return name in KNOWN_NAMES or is_shard(name)


def is_shard(name: str) -> bool:
    """Whether this may be the base name of a weight file."""
    return _SHARD.fullmatch(name) is not None
