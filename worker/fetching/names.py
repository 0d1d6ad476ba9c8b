"""Which files are fetched at all: weights as safetensors, configuration and tokenizer as JSON or plain text.

Nothing that can carry code (Python, pickles) is ever asked for, so it never lies beside a checkpoint that is loaded.
"""

import re

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
KNOWN_NAMES = (
    CONFIG,
    WEIGHTS,
    WEIGHTS_INDEX,
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
)
"""Files of a checkpoint that have one name everywhere; a source that cannot list is asked for each."""

DATA_SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")
ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar", ".zip")

_SHARD = re.compile(r"[A-Za-z0-9][\w.-]{0,127}\.safetensors", re.ASCII)


def is_checkpoint_file(name: str) -> bool:
    """Whether a file of this base name may be part of a checkpoint."""
    return name in KNOWN_NAMES or _SHARD.fullmatch(name) is not None


def is_shard(name: str) -> bool:
    """Whether this may be the base name of a file of weights."""
    return _SHARD.fullmatch(name) is not None


def is_archive(name: str) -> bool:
    """Whether a file of this name is taken as an archive of a checkpoint."""
    return name.lower().endswith(ARCHIVE_SUFFIXES)


def data_suffix(name: str) -> str | None:
    """The suffix that says how a data file is read, for example ``.jsonl`` or ``.csv.gz``; None if it is not known."""
    lower = name.lower()
    endings = (suffix + packed for suffix in DATA_SUFFIXES for packed in ("", ".gz"))
    return next((ending for ending in endings if lower.endswith(ending)), None)
