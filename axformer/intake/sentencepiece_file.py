"""Check a SentencePiece model before transformers makes a tokenizer from it.

The file is a protocol buffer with scored pieces and training settings. Google's protobuf library parses it, never
SentencePiece's own, which compiles it. Only Unigram models are read, because transformers' tokenizers reproduce them exactly.
For a BPE model (Llama's, Gemma's) they cannot be sure of the leading space and of the merges.
"""

import math
from pathlib import Path
from typing import Any

from transformers.convert_slow_tokenizer import import_protobuf

from axformer.intake.limits import DIMENSIONS, LIST_LENGTH, NAME_LENGTH, SENTENCEPIECE_BYTES

_UNIGRAM = 1
_UNKNOWN, _CONTROL, _OWN = 2, 3, 4
"""Piece types of the format: unknown, control, and user-defined."""


def check_sentencepiece(path: Path) -> None:
    """Check that a tokenizer can be made from a file's pieces.

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
