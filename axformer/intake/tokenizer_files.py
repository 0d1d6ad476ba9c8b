"""Copy the files of a tokenizer: its tables, and arguments of its class by known keys only.

Arguments could name other files of this machine, third-party code, or a class that runs programs. Chat templates are copied as
text; nothing here renders them.

With a ``tokenizer.json``, that file alone says how texts become ids. Its class would build another tokenizer from the same
vocabulary where the file has another template, normalizer or pre-tokenizer than the class, and differently in transformers 4
and 5. So it is loaded by :data:`PLAIN_CLASS`, which both know; the class's special tokens and sides become explicit settings.
"""

import inspect
import json
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers.convert_slow_tokenizer import import_protobuf
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES, tokenizer_class_from_name

from axformer.errors import CheckpointError, panics_as_errors
from axformer.intake.limits import DIMENSIONS, LIST_LENGTH, NAME_LENGTH, SENTENCEPIECE_BYTES, TOKENIZER_BYTES
from axformer.intake.names import SENTENCEPIECE_MODELS, TOKENIZER, TOKENIZER_CONFIG, TOKENIZER_OBJECTS, TOKENIZER_TABLES
from axformer.intake.strict_json import read_json

TOKENIZER_CLASSES = frozenset(
    name + fast
    for name in (
        "AlbertTokenizer", "BertTokenizer", "BloomTokenizer", "CamembertTokenizer", "CodeLlamaTokenizer", "CohereTokenizer",
        "DebertaTokenizer", "DebertaV2Tokenizer", "DistilBertTokenizer", "ElectraTokenizer", "GPT2Tokenizer",
        "GPTNeoXTokenizer", "GemmaTokenizer", "HerbertTokenizer", "LlamaTokenizer", "MPNetTokenizer", "PreTrainedTokenizer",
        "Qwen2Tokenizer", "Qwen3Tokenizer", "RobertaTokenizer", "XLMRobertaTokenizer", "XLNetTokenizer",
    )
    for fast in ("", "Fast")
) | {"TokenizersBackend"}  # fmt: skip
"""The tokenizer classes that are loaded, as in ``tokenizer_class``: those of the supported families, which need no third-party
code. Any other class is ignored if there is a ``tokenizer.json``, which fully defines a tokenizer."""
PLAIN_CLASS = "PreTrainedTokenizerFast"
"""The class that does only what ``tokenizer.json`` says, under the name that transformers 4 and 5 know."""
PREFIX_SPACE = "add_prefix_space"
_NORMALIZER_KEYS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
"""Keys of ``tokenizer_config.json`` that classes with BERT's normalizer hear, and their names in ``tokenizer.json``."""
_PROBED, _IN_A_TEXT = 20_000, 50
"""Most tokens of a vocabulary on which two tokenizers are compared, and tokens of one text."""
_HARD = " Naïve  CAFÉS, don't (re)read: 1,234.5 你好\n\tthe#end"
"""A text that normalizers and pre-tokenizers take apart differently."""
_SPECIAL_TOKENS_MAP = "special_tokens_map.json"
SENTENCEPIECE_CLASSES = {
    "AlbertTokenizer": "spiece.model",
    "CamembertTokenizer": "sentencepiece.bpe.model",
    "DebertaV2Tokenizer": "spm.model",
    "XLMRobertaTokenizer": "sentencepiece.bpe.model",
    "XLNetTokenizer": "spiece.model",
}
"""Classes that read a SentencePiece model, and the file name that each reads."""
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
"""Keys of ``tokenizer_config.json`` that are copied, besides the special tokens."""
_SPECIAL_TOKEN = "_token"  # noqa: S105 - the end of a key


def take_tokenizer(directory: Path, model_type: str, named: Any, into: Path) -> None:
    """Copy the known parts of a tokenizer's files into another directory.

    Args:
        named: the class named by the model's config, or None; the tokenizer's own config takes precedence.

    Raises:
        CheckpointError: a file cannot be read, is too large, or asks for a class that is not loaded.
    """
    there = [name for name in (*TOKENIZER_TABLES, *SENTENCEPIECE_MODELS) if (directory / name).is_file()]
    if not there:  # a tokenizer without a vocabulary would load
        names = ", ".join((*TOKENIZER_TABLES, *SENTENCEPIECE_MODELS))
        raise CheckpointError(
            f"checkpoint '{directory}' has no tokenizer that loads: none of {names} is there; save it with its tokenizer"
        )
    objects = {name: content for name in TOKENIZER_OBJECTS if (content := _read(directory, name)) is not None}
    said = known_arguments(objects.get(TOKENIZER_CONFIG, {}))
    named = said.get(CLASS) or named
    for name in set(there) & set(TOKENIZER_TABLES):
        _copy_table(directory, name, into)
    if TOKENIZER not in there:
        _take_pieces(directory, _known_class(directory, model_type, named), there, into)
    else:
        tokens = known_arguments(objects.get(_SPECIAL_TOKENS_MAP, {}))
        try:
            said = _settled(into / TOKENIZER, _loaded_class(model_type, named), tokens, said)
        except (AttributeError, IndexError, TypeError):  # of objects that are none, and the like
            raise _refused(directory, TOKENIZER, "it is not of a tokenizer") from None
    if said or TOKENIZER_CONFIG in objects:
        objects[TOKENIZER_CONFIG] = said
    for name, content in objects.items():
        (into / name).write_text(json.dumps(content, indent=2), encoding="utf-8")


def check_words(directory: Path, tokenizer: Any) -> None:
    """Check that a loaded tokenizer has a vocabulary, since its class may have looked for tables under other names.

    Raises:
        CheckpointError: its vocabulary is empty.
    """
    if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens):
        raise unloadable(directory, f"a {type(tokenizer).__name__} finds no words in its files")


def unloadable(directory: Path, why: str) -> CheckpointError:
    """The error for a tokenizer whose files exist but cannot be used."""
    remedy = "save it again" if (directory / TOKENIZER).is_file() else _write(directory)
    return CheckpointError(f"checkpoint '{directory}' has no tokenizer that loads: {why}; {remedy}")


def _known_class(directory: Path, model_type: str, named: Any) -> str:
    if named is not None and str(named) not in TOKENIZER_CLASSES:
        raise CheckpointError(
            f"checkpoint '{directory}' has a tokenizer of class {str(named)[:80]!r}, which is not loaded without {TOKENIZER}; "
            f"{_write(directory)}"
        )
    return _class_of(model_type, named)


def _class_of(model_type: str, named: str | None) -> str:
    """The class of a tokenizer, without the suffix ``Fast``."""
    return str(named or TOKENIZER_MAPPING_NAMES.get(model_type) or PLAIN_CLASS).removesuffix("Fast")


def _loaded_class(model_type: str, named: Any) -> Any:
    """The class that transformers makes a tokenizer of; None if it is not known."""
    known = named is None or str(named) in TOKENIZER_CLASSES
    return tokenizer_class_from_name(_class_of(model_type, named)) if known else None


def _settled(path: Path, owner: Any, tokens: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """The settings beside a ``tokenizer.json``, which is changed where they say so."""
    table = json.loads(path.read_bytes())
    if _hear(table, said, owner):
        path.write_text(json.dumps(table, ensure_ascii=False), encoding="utf-8")
    arguments = {} if owner is None else inspect.signature(owner.__init__).parameters
    vocabulary = [word if isinstance(word, str) else word[0] for word in (table.get("model") or {}).get("vocab") or ()]
    words = {*vocabulary, *(token.get("content") for token in table.get("added_tokens") or ())}
    own = {name: one.default for name, one in arguments.items() if _is_special(name) and one.default in words}
    return settings_of(owner, own | dict(tokens), said, table)


def _hear(table: dict[str, Any], said: Mapping[str, Any], owner: Any) -> bool:
    """Change a ``tokenizer.json`` to what the settings beside it say, as transformers does; return whether it changed."""
    before = json.dumps((table.get("normalizer"), table.get("pre_tokenizer")))
    splits, normalizer = table.get("pre_tokenizer") or {}, table.get("normalizer") or {}
    if PREFIX_SPACE in splits and isinstance(said.get(PREFIX_SPACE), bool):
        splits[PREFIX_SPACE] = said[PREFIX_SPACE]
    arguments = {} if owner is None else inspect.signature(owner.__init__).parameters
    if normalizer.get("type") == "BertNormalizer":
        heard = {key: name for key, name in _NORMALIZER_KEYS.items() if key in arguments}
        normalizer |= {name: said[key] for key, name in heard.items() if isinstance(said.get(key), bool)}
    return before != json.dumps((table.get("normalizer"), table.get("pre_tokenizer")))


def settings_of(
    owner: Any, tokens: Mapping[str, Any], said: Mapping[str, Any], table: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings with which :data:`PLAIN_CLASS` makes the same tokenizer, in transformers 4 and 5.

    Args:
        owner: the tokenizer or its class; None if it is not known.
        tokens: its special tokens, where the settings do not name them.
        said: the settings so far.
        table: the content of its ``tokenizer.json``.
    """
    own = {name: value for name in ("model_input_names", "padding_side") if (value := getattr(owner, name, None))}
    settings = own | dict(tokens) | dict(said) | {CLASS: PLAIN_CLASS}
    if isinstance(settings.get("extra_special_tokens"), list):  # which transformers 4 takes for names with tokens
        settings["additional_special_tokens"] = settings.pop("extra_special_tokens")
    splits = table.get("pre_tokenizer") or {}
    if PREFIX_SPACE in splits:  # which transformers 4 takes for false where it is not said
        settings[PREFIX_SPACE] = splits[PREFIX_SPACE]
    return settings


def _take_pieces(directory: Path, name: str, there: Sequence[str], into: Path) -> None:
    """Copy the SentencePiece model that a class reads, if it reads one."""
    wanted = SENTENCEPIECE_CLASSES.get(name)
    if wanted is not None and wanted in there:
        try:
            check_sentencepiece(directory / wanted)
        except (OSError, ValueError) as error:
            raise unloadable(directory, f"{wanted} cannot be read: {error}") from None
        shutil.copyfile(directory / wanted, into / wanted)
    elif set(there) <= set(SENTENCEPIECE_MODELS):
        reads = f"a {name} looks for {wanted}" if wanted else f"a {name} is not made of it here"
        raise unloadable(directory, f"it has {there[0]}, and {reads}")


def other_reading(directory: Path, model_type: str, named: Any, taken: Path, tokenizer: Any) -> str | None:
    """What users should know where the files of a tokenizer say different things; None if they agree.

    Args:
        named: the class named by the model's config, or None.
        taken: the directory of :func:`take_tokenizer`.
        tokenizer: the tokenizer that was loaded from there.
    """
    if not (directory / TOKENIZER).is_file():
        return None
    if (directory / TOKENIZER).read_bytes() != (taken / TOKENIZER).read_bytes():
        return (
            f"{TOKENIZER} and {TOKENIZER_CONFIG} read texts differently; the settings of the second count, as in transformers, "
            f"and {TOKENIZER} of the result has them too"
        )
    owner = _loaded_class(model_type, (_read(directory, TOKENIZER_CONFIG) or {}).get(CLASS) or named)
    vocabulary = tokenizer.get_vocab()
    words = [word.lstrip("#▁Ġ") for word in sorted(vocabulary, key=vocabulary.__getitem__)[:_PROBED]]
    texts = [_HARD, *(" ".join(words[start : start + _IN_A_TEXT]) for start in range(0, len(words), _IN_A_TEXT))]
    try:
        with panics_as_errors():
            other = None if owner is None else owner.from_pretrained(taken, local_files_only=True)
            if other is None or _ids(other, texts) == _ids(tokenizer, texts):
                return None
    except Exception:  # noqa: BLE001 - the class makes nothing of this file, which counts
        return None
    return (
        f"the class {owner.__name__}, which transformers makes of the checkpoint's tokenizer, reads texts otherwise than its "
        f"{TOKENIZER}; the file counts, here and in the result, which names no class of its own"
    )


def _ids(tokenizer: Any, texts: list[str]) -> tuple[Any, Any]:
    """The ids of texts, and of texts in pairs."""
    return tokenizer(texts, verbose=False)["input_ids"], tokenizer(texts, texts[::-1], verbose=False)["input_ids"]


def _write(directory: Path) -> str:
    """Advice on how to write ``tokenizer.json``, which any tokenizer loads from."""
    path = str(directory)
    return (
        f"write {TOKENIZER} beside it, with the transformers that the model was trained with: "
        f"AutoTokenizer.from_pretrained({path!r}, use_fast=True).save_pretrained({path!r})"
    )


def _copy_table(directory: Path, name: str, into: Path) -> None:
    path = directory / name
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


def _is_known(key: str) -> bool:
    return key in _KNOWN or _is_special(key)


def _is_special(key: str) -> bool:
    return key.endswith(_SPECIAL_TOKEN) and not key.startswith(("_", "add_"))


def _refused(directory: Path, name: str, why: str) -> CheckpointError:
    return unloadable(directory, f"{name} cannot be read: {why}")


_UNIGRAM = 1
_UNKNOWN, _CONTROL, _OWN = 2, 3, 4
"""Piece types of the format: unknown, control, and user-defined."""


def check_sentencepiece(path: Path) -> None:
    """Check that a tokenizer can be made from a file's pieces, before transformers makes one.

    The file is a protocol buffer with scored pieces and training settings. Google's protobuf library parses it, never
    SentencePiece's own, which compiles it. Only Unigram models are read, because transformers' tokenizers reproduce them
    exactly. For a BPE model (Llama's, Gemma's) they cannot be sure of the leading space and of the merges.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is too large, not a SentencePiece model, or not a Unigram model.
    """
    if path.stat().st_size > SENTENCEPIECE_BYTES:
        raise ValueError(f"it has more than {SENTENCEPIECE_BYTES} bytes")
    model: Any = import_protobuf().ModelProto()  # type: ignore[no-untyped-call]
    try:
        model.ParseFromString(path.read_bytes())
        pieces = [(piece.piece, piece.score, piece.type) for piece in model.pieces]
    except Exception as error:  # noqa: BLE001 - the parser's own class of errors comes with each of its versions
        raise ValueError(f"it is not a SentencePiece model ({error})") from None
    if model.trainer_spec.model_type != _UNIGRAM:
        raise ValueError("it is a SentencePiece model of another kind than Unigram, which is not read")
    _check_pieces(pieces)


def _check_pieces(pieces: list[tuple[str, float, int]]) -> None:
    most = DIMENSIONS["vocab_size"]
    if not 0 < len(pieces) <= most:
        raise ValueError(f"it has {len(pieces)} pieces; 1 to {most} are read")
    if not any(kind == _UNKNOWN for _, _, kind in pieces):
        raise ValueError("it has no piece for the unknown")
    if sum(kind in (_CONTROL, _OWN) for _, _, kind in pieces) > LIST_LENGTH:
        raise ValueError(f"it has more than {LIST_LENGTH} pieces of control")
    if any(len(text) > NAME_LENGTH or not math.isfinite(score) for text, score, _ in pieces):
        raise ValueError(f"it has pieces of more than {NAME_LENGTH} characters, or with scores that are not numbers")
