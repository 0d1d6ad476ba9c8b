"""Which tokens of a vocabulary stay, and a ``tokenizer.json`` with these alone.

A tokenizer can only give tokens that are parts of a text as its normalizer leaves it. So tokens with a character that no text
of some scripts has never come of such a text: without them WordPiece finds the same longest pieces, BPE applies the same merges
in the same order, and Unigram's best segmentation stays the best. The same holds for texts whose own tokens all stay.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import regex
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

from axformer.errors import CheckpointError, ConfigError

_EVERYWHERE = ("Common", "Inherited")
"""Scripts of digits, punctuation and accents, which texts of any script have."""
_CHARACTERS = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
_BYTE = regex.compile(r"<0x[0-9A-F]{2}>")
"""A byte of a character that is no token."""
_SPACE = "▁"
"""What stands for a space in pieces."""
_LONGEST = 4
"""Bytes of a character, at most."""
_FIRST_IDS = 100
"""Where the padding has an id below this, smaller ones stay, since positions may be counted from it, as RoBERTa does."""


def characters_of(scripts: Iterable[str]) -> set[str]:
    """The characters of texts in some scripts, by their names in Unicode.

    Raises:
        ConfigError: there is no such script.
    """
    found: set[str] = set()
    for script in (*scripts, *_EVERYWHERE):
        try:
            found.update(regex.findall(rf"\p{{Script={script}}}", _CHARACTERS))
        except regex.error:
            raise ConfigError(
                f"there is no script '{script[:80]}'; they are called as in Unicode, for example Latin, Cyrillic or Han",
                "scripts",
            ) from None
    return found


@dataclass(frozen=True)
class Vocabulary:
    """The content of a ``tokenizer.json``, and the ids that stay in any case."""

    table: Mapping[str, Any]
    fixed: frozenset[int]

    @classmethod
    def of(cls, table: Mapping[str, Any], ids: Iterable[int], padding: int | None) -> "Vocabulary":
        """The vocabulary of a model.

        Args:
            ids: those that the model's configuration names.
            padding: the id of padding; None if there is none.

        Raises:
            CheckpointError: it is not of WordPiece, BPE or Unigram.
        """
        model = table["model"]
        kind, words = model.get("type"), model.get("vocab")
        if kind not in ("WordPiece", "BPE", "Unigram") or not words:
            raise CheckpointError(
                f"its tokenizer is of the kind {kind}; vocabularies of WordPiece, BPE and Unigram are made smaller"
            )
        fixed = {*ids, *_ids_in(table.get("post_processor")), *(one["id"] for one in table.get("added_tokens") or ())}
        if padding is not None and padding < _FIRST_IDS:
            fixed.update(range(padding + 1))
        if kind == "Unigram":  # what is unknown costs so much more than the least likely piece
            fixed |= {model.get("unk_id") or 0, min(range(len(words)), key=lambda place: words[place][1])}
        elif model.get("unk_token") in words:
            fixed.add(words[model["unk_token"]])
        made = cls(table, frozenset(fixed))
        return cls(table, made.fixed & frozenset(made.tokens.values()))

    @cached_property
    def tokens(self) -> dict[str, int]:
        """The id of each token, of those that were added too."""
        words = self.table["model"]["vocab"]
        own = words if isinstance(words, Mapping) else {piece: place for place, (piece, _) in enumerate(words)}
        return {**own, **{one["content"]: one["id"] for one in self.table.get("added_tokens") or ()}}

    def written_with(self, characters: Collection[str]) -> set[int]:
        """The ids of tokens that texts of some characters can have; of tokens of bytes each single one too."""
        parts = _Parts.of(self._as_tokens_have(characters))
        return {*self.fixed} | {
            place
            for token, place in self.tokens.items()
            if parts.make(bare := self._bare(token)) or (self._is_of_bytes and len(bare) == 1)
        }

    def used(self, seen: Iterable[int], texts: Iterable[str]) -> set[int]:
        """The ids that texts have, those of single characters, and what merges need to come to them.

        Args:
            seen: ids that texts have.
            texts: those with the characters that stay.
        """
        alphabet = {*self._as_tokens_have(texts), _SPACE}
        single = {place for token, place in self.tokens.items() if self._is_single(self._bare(token), alphabet)}
        kept, tokens = {*self.fixed} | single | (set(seen) & {*self.tokens.values()}), self.tokens
        open_ids = list(kept)
        made_of: dict[int, list[int]] = {}
        for left, right, whole in _merges(self.table["model"]):
            made_of.setdefault(tokens[whole], []).extend((tokens[left], tokens[right]))
        while open_ids:
            new = set(made_of.get(open_ids.pop(), ())) - kept
            kept |= new
            open_ids += new
        return kept

    def _is_single(self, bare: str, alphabet: Collection[str]) -> bool:
        return _BYTE.fullmatch(bare) is not None or (len(bare) == 1 and (self._is_of_bytes or bare in alphabet))

    def only(self, kept: Iterable[int]) -> tuple[dict[str, Any], dict[int, int]]:
        """A ``tokenizer.json`` with the tokens of these ids alone, in their order, and the new id of each."""
        new = {old: place for place, old in enumerate(sorted(kept))}
        model, words, tokens = dict(self.table["model"]), self.table["model"]["vocab"], self.tokens
        if isinstance(words, dict):
            model["vocab"] = {token: new[old] for token, old in words.items() if old in new}
        else:
            model["vocab"] = [piece for place, piece in enumerate(words) if place in new]
            model["unk_id"] = None if model.get("unk_id") is None else new[model["unk_id"]]
        if "merges" in model:
            told = zip(model["merges"], _merges(model), strict=True)
            model["merges"] = [merge for merge, parts in told if {tokens[one] for one in parts} <= new.keys()]
        table = {**self.table, "model": model, "post_processor": _renamed(self.table.get("post_processor"), new)}
        table["added_tokens"] = [
            {**one, "id": new.get(one["id"], one["id"])} for one in table.get("added_tokens") or ()
        ]
        if table.get("padding"):
            table["padding"] = {**table["padding"], "pad_id": new.get(table["padding"]["pad_id"], 0)}
        return table, new

    @cached_property
    def _is_of_bytes(self) -> bool:
        return any("ByteLevel" in str(self.table.get(part)) for part in ("pre_tokenizer", "decoder"))

    def _as_tokens_have(self, texts: Iterable[str]) -> set[str]:
        """The characters of texts, as they are and as the normalizer leaves them; where tokens are of bytes, these."""
        normalizer = Tokenizer.from_str(json.dumps(self.table)).normalizer
        found = set[str]()
        for text in texts:
            found.update(text, "" if normalizer is None else normalizer.normalize_str(text))
        if not self._is_of_bytes:
            return found
        bytes_of = ByteLevel(add_prefix_space=False, use_regex=False)
        return {bytes_of.pre_tokenize_str(one)[0][0] for one in found}

    def _bare(self, token: str) -> str:
        """A token without the marks of its place in a word."""
        model = self.table["model"]
        before, behind = model.get("continuing_subword_prefix") or "", model.get("end_of_word_suffix") or ""
        return token.removeprefix(before).removesuffix(behind) or token


@dataclass(frozen=True)
class _Parts:
    """Characters as tokens have them, and the parts of those that are of several bytes."""

    whole: Collection[str]
    ends: Collection[str]
    beginnings: Collection[str]
    middles: Collection[str]

    @classmethod
    def of(cls, characters: Collection[str]) -> "_Parts":
        ends = {one[start:] for one in characters for start in range(1, len(one))}
        beginnings = {one[:stop] for one in characters for stop in range(1, len(one))}
        middles = {end[:stop] for end in ends for stop in range(1, len(end) + 1)}
        return cls(characters, ends | {""}, beginnings | {""}, middles)

    def make(self, token: str) -> bool:
        """Whether a token is a part of any row of these characters."""
        if token in self.middles or _BYTE.fullmatch(token):
            return True
        return any(
            token[:start] in self.ends and self._continue(token[start:]) for start in range(min(_LONGEST, len(token)))
        )

    def _continue(self, rest: str) -> bool:
        while rest not in self.beginnings:
            length = next((length for length in range(1, _LONGEST + 1) if rest[:length] in self.whole), None)
            if length is None:
                return False
            rest = rest[length:]
        return True


def _merges(model: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The two parts of each merge, and what they make."""
    prefix = model.get("continuing_subword_prefix") or ""
    for merge in model.get("merges") or ():
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        yield left, right, left + right.removeprefix(prefix)


def _ids_in(part: Any) -> Iterator[int]:
    """The ids that a post-processor names."""
    if isinstance(part, Mapping):
        yield from part.get("ids") or ()
        for name, value in part.items():
            if name in ("sep", "cls"):
                yield value[1]
            else:
                yield from _ids_in(value)
    elif isinstance(part, list):
        for one in part:
            yield from _ids_in(one)


def _renamed(part: Any, new: Mapping[int, int]) -> Any:
    """A post-processor with other ids."""
    if isinstance(part, list):
        return [_renamed(one, new) for one in part]
    if not isinstance(part, Mapping):
        return part
    found = {name: _renamed(value, new) for name, value in part.items()}
    if isinstance(part.get("ids"), list):
        found["ids"] = [new[one] for one in part["ids"]]
    return found | {name: [part[name][0], new[part[name][1]]] for name in ("sep", "cls") if name in part}
