"""Compares calibration data with the validation data by their tokens.

Weights fitted on another language or format are right for that data, but not for the task. Three figures are compared, none of
which needs labels: the share of tokens unknown to the tokenizer; the characters per token, which are fewer if words of another
language, or code, are split into pieces; and the tokens per row.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from axformer.intake.dataset import DataSet

UNKNOWN_SHARE = 0.02
"""A share of unknown tokens that is larger by more than this is reported. With MiniLM's tokenizer, ten public English sets have
shares of at most 0.0005, a few sentences of Chinese and Thai 0.6 and more, of Korean 0.05."""
SHORTER_TOKENS = 0.8
"""Tokens that are shorter than this many times the validation data's, or longer by the inverse, are reported. With the same
tokenizer, nine English sets have 3.5 to 4.0 characters per token, one of text messages 2.8; German, French and Finnish 2.2 to
2.5, other alphabets 1.0, Python 2.9."""
LONGER_ROWS = 4.0
"""Rows that are more than this many times as long or as short are reported, for example questions with contexts against single
sentences."""
_MARKS = ("##", "▁", "Ġ", "</w>")
"""The marks of tokenizers for the beginning, the middle or the end of a word."""


@dataclass(frozen=True)
class TokenFigures:
    """Figures of the tokens of a data set. Tokens that the tokenizer adds are not counted, except in ``row``."""

    unknown: float
    """Share of tokens that the tokenizer does not know."""
    characters: float
    """Mean number of characters of a known token."""
    row: float
    """Number of tokens of the median model row, including those that the tokenizer adds."""


def figures_of(data: DataSet, tokenizer: Any) -> TokenFigures:
    """Measure the tokens of a data set."""
    counts = Counter(_ids(data.samples.encoded.features["input_ids"]))
    framing = {getattr(tokenizer, f"{name}_token_id") for name in ("cls", "sep", "bos", "eos", "pad", "mask")}
    own = {id: count for id, count in counts.items() if id not in framing}
    unknown = own.pop(tokenizer.unk_token_id, 0)
    known = sum(own.values())
    pieces = dict(zip(own, tokenizer.convert_ids_to_tokens(list(own)), strict=True))
    characters = sum(count * len(_plain(pieces[id])) for id, count in own.items())
    lengths = data.samples.encoded.lengths
    return TokenFigures(unknown / max(1, unknown + known), characters / max(1, known), float(median(lengths)))


def unlike(calibrating: TokenFigures, validation: TokenFigures) -> str | None:
    """The figures that are far from the validation data's, as a note for users; None if all are close."""
    found = []
    if calibrating.unknown > validation.unknown + UNKNOWN_SHARE:
        found.append(
            f"{calibrating.unknown:.1%} of its tokens are unknown to the tokenizer (validation data: {validation.unknown:.1%})"
        )
    if _is_far(calibrating.characters, validation.characters, 1 / SHORTER_TOKENS):
        found.append(
            f"its tokens have {calibrating.characters:.1f} characters on average (validation data: {validation.characters:.1f})"
        )
    if _is_far(calibrating.row, validation.row, LONGER_ROWS):
        found.append(f"its median row has {calibrating.row:g} tokens (validation data: {validation.row:g})")
    if not found:
        return None
    return (
        f"{', '.join(found)}: weights are fitted on it, so it should be of the task's language and format; if it is not, give "
        "other rows"
    )


def _is_far(one: float, other: float, times: float) -> bool:
    """Whether one figure is more than ``times`` times the other. A figure of 0 could not be measured, and is not far from
    any."""
    return min(one, other) > 0 and max(one, other) / min(one, other) > times


def _ids(rows: Iterable[Any]) -> Iterator[int]:
    for row in rows:
        if row and isinstance(row[0], list):
            yield from _ids(row)
        else:
            yield from row


def _plain(piece: str) -> str:
    for mark in _MARKS:
        piece = piece.replace(mark, "")
    return piece
