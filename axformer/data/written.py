"""What people and programs write into cells: characters that nobody sees, and lists as JSON, Python and NumPy write them."""

import ast
import json
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

_UNSEEN = re.compile(
    "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
"""Control, format and filling characters, and selectors of variants."""
_BRACKETED = re.compile(r"\s*(?:\[.*\]|\(.*\)|\{.*\}|array\(.*\))\s*", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>b?'(?:[^'\\]|\\.)*'|b?"(?:[^"\\]|\\.)*")|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"""
    r"""|(?P<word>-?[A-Za-z_][\w.]*)|(?P<mark>[][(){},:=]))""",
    re.DOTALL,
)
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_WORDS = {"None": None, "True": True, "False": False, "nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
NO_ANSWER = "no answer"
"""How people write that a question has none."""
_CALLS = re.compile(r"array|list|tuple|set|frozenset|(?:np|numpy)\.\w+")


def seen(text: str) -> str:
    """A text as it looks: with composed accents (NFC), without invisible characters, with one plain space for each gap."""
    if not text.isascii() or not text.isprintable():
        text = _UNSEEN.sub("", unicodedata.normalize("NFC", text))
    return " ".join(text.split())


def is_blank(text: str) -> bool:
    """Whether nobody sees anything of a text."""
    return not text or (not text[0].isalnum() and not _UNSEEN.sub("", text).strip())


def words_of(answer: str) -> list[str]:
    """The normalised words of an answer to a question, as in SQuAD v1.1: lower case, without ASCII punctuation, then without
    articles, split at spaces."""
    return _ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split()


def compared(answer: str) -> str:
    """An answer to a question as it is compared; :data:`NO_ANSWER` for one without words."""
    return " ".join(words_of(answer)) or NO_ANSWER


def unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, for the parser's ``object_pairs_hook``.

    Raises:
        ValueError: it has a key twice, of which the parser would take the last.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"it holds the key {twice[:40]!r} twice")
    return found


def is_bracketed(text: str) -> bool:
    """Whether a text stands in brackets, as a list or an object does."""
    return _BRACKETED.fullmatch(text) is not None


def written_out(value: Any) -> Any:
    """The list or object that a text in brackets writes; all else unchanged."""
    if not isinstance(value, str) or not is_bracketed(value):
        return value
    for read in (_json, _literal):
        try:
            return read(value)
        except (ValueError, SyntaxError, RecursionError):
            continue
    return value


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=unique_keys)


def _literal(text: str) -> Any:
    parser = _Literal(text)
    value = parser.value()
    if parser.tokens:
        raise ValueError(f"{parser.tokens[-1]} follows the end")
    return value


class _Literal:
    """Parses what Python and NumPy print of lists, dicts and arrays; nothing is evaluated.

    Items need no comma between them, as in ``[0 1 0]``. What NumPy leaves out, as in ``[0 1 ... 8 9]``, is not guessed.
    """

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        """Those that are left, the next one last."""
        place, end = 0, len(text.rstrip())
        while place < end:
            if (token := _TOKEN.match(text, place)) is None:
                raise ValueError(f"{text[place : place + 10]!r} is no literal")
            self.tokens.append(token[token.lastgroup or 0])
            place = token.end()
        self.tokens.reverse()

    def value(self) -> Any:
        token = self._take()
        if token in _CLOSING:
            return self._items(_CLOSING[token])
        if token in _WORDS:
            return _WORDS[token]
        if _CALLS.fullmatch(token) and self._take() == "(":
            return next(iter(self._items(")")), [])
        if token[-1] in "'\"":
            if "\\" not in token and "\n" not in token:
                return token.removeprefix("b")[1:-1]
            text = ast.literal_eval(token)
            return text.decode() if isinstance(text, bytes) else text
        return int(token) if token.lstrip("+-").isdigit() else float(token)

    def _items(self, closing: str) -> Any:
        found: list[Any] = []
        pairs: list[tuple[Any, Any]] = []
        while (mark := self._next()) != closing:
            if mark == ",":
                self._take()
            elif self._next(2) == "=":  # dtype=object
                del self.tokens[-3:]
            else:
                value = self.value()
                if self._next() == ":":
                    self._take()
                    pairs.append((str(value), self.value()))
                else:
                    found.append(value)
        self._take()
        if found and pairs:
            raise ValueError("it mixes items and pairs")
        return found if found or closing != "}" else unique_keys(pairs)

    def _take(self) -> str:
        if not self.tokens:
            raise ValueError("it has no end")
        return self.tokens.pop()

    def _next(self, place: int = 1) -> str | None:
        return self.tokens[-place] if len(self.tokens) >= place else None
