"""Takes over the files of a tokenizer: tables as they are, arguments of its class by the keys that are known.

Arguments could name other files of this machine, code of others, or a class that runs programs. Chat templates go along as
the texts that they are; nothing here renders them.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from axformer.errors import CheckpointError
from axformer.intake.limits import TOKENIZER_BYTES
from axformer.intake.names import TOKENIZER_CONFIG, TOKENIZER_OBJECTS, TOKENIZER_TABLES
from axformer.intake.strict_json import read_json
from axformer.intake.tokenizer_classes import TOKENIZER_CLASSES

CLASS = "tokenizer_class"
_KNOWN = frozenset(
    {
        # of every tokenizer
        CLASS, "added_tokens_decoder", "additional_special_tokens", "chat_template", "clean_up_tokenization_spaces",
        "extra_special_tokens", "max_length", "model_input_names", "model_max_length", "model_specific_special_tokens",
        "pad_to_multiple_of", "pad_token_type_id", "padding_side", "split_special_tokens", "stride", "truncation_side",
        "truncation_strategy",
        # of families
        "add_bos_token", "add_eos_token", "add_prefix_space", "do_basic_tokenize", "do_lower_case", "errors", "keep_accents",
        "legacy", "never_split", "remove_space", "spaces_between_special_tokens", "split_by_punct", "strip_accents",
        "tokenize_chinese_chars", "trim_offsets", "unk_id", "use_default_system_prompt", "vocab_type", "wordpieces_prefix",
    }
)  # fmt: skip
"""Keys of ``tokenizer_config.json`` that are taken over, beside the special tokens."""
_SPECIAL_TOKEN = "_token"  # noqa: S105 - the end of a key


def take_tokenizer(directory: Path, into: Path) -> None:
    """Put what is known of a tokenizer's files into another directory.

    Raises:
        CheckpointError: a file cannot be read, is too large, or asks for a class that is not loaded.
    """
    if not any((directory / name).is_file() for name in TOKENIZER_TABLES):  # one that knows no words would load
        raise CheckpointError(
            f"checkpoint '{directory}' has no tokenizer that loads: none of {', '.join(TOKENIZER_TABLES)} is there; save it "
            "with its tokenizer"
        )
    for name in TOKENIZER_TABLES:
        _copy_table(directory, name, into)
    for name in TOKENIZER_OBJECTS:
        content = _read(directory, name)
        if content is not None:
            kept = content if name != TOKENIZER_CONFIG else _known(directory, content)
            (into / name).write_text(json.dumps(kept, indent=2), encoding="utf-8")


def _copy_table(directory: Path, name: str, into: Path) -> None:
    path = directory / name
    if not path.is_file():
        return
    if name.endswith(".json"):
        _read(directory, name)
    elif path.stat().st_size > TOKENIZER_BYTES:
        raise _refused(directory, name, f"it has more than {TOKENIZER_BYTES} bytes")
    shutil.copyfile(path, into / name)


def _read(directory: Path, name: str) -> dict[str, Any] | None:
    path = directory / name
    if not path.is_file():
        return None
    try:
        content = read_json(path, TOKENIZER_BYTES)
    except (OSError, ValueError) as error:
        raise _refused(directory, name, str(error)) from None
    if not isinstance(content, dict):
        raise _refused(directory, name, "it holds no object")
    return content


def known_arguments(content: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a ``tokenizer_config.json`` that are known, with their values."""
    return {key: value for key, value in content.items() if _is_known(key)}


def _known(directory: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    kept = known_arguments(content)
    wished = kept.get(CLASS)
    if wished is not None and str(wished) not in TOKENIZER_CLASSES:
        raise CheckpointError(
            f"checkpoint '{directory}' has a tokenizer of class {str(wished)[:80]!r}, which is not loaded; save it with a fast "
            "tokenizer, which writes tokenizer.json"
        )
    return kept


def _is_known(key: str) -> bool:
    return key in _KNOWN or (key.endswith(_SPECIAL_TOKEN) and not key.startswith("_"))


def _refused(directory: Path, name: str, why: str) -> CheckpointError:
    return CheckpointError(
        f"checkpoint '{directory}' has no tokenizer that loads: {name} cannot be read: {why}; save it again"
    )
