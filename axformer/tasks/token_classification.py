"""Token classification: a tag for each word, such as its part of speech or the chunk that it is in.

Where tags are those of chunks, F1 counts these (:func:`axformer.tasks.tag_schemes.count_chunks`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn import functional

from axformer.data.batches import Batch
from axformer.data.encoding import (
    UNLABELLED,
    Encoded,
    TokenLimits,
    one_row_a_sample,
    require_fast,
    tokenize,
)
from axformer.data.labels import ClassNames, LabelColumn
from axformer.data.rows import Label, Rows
from axformer.errors import DataError
from axformer.tasks.class_scores import f1
from axformer.tasks.divergence import Predicted, where
from axformer.tasks.guess import Guess, guess_of_choices, mean_by_sample
from axformer.tasks.standing import (
    Choices,
    LabelAgreement,
    agreement_of,
    better_order,
    is_reliably_positive,
    order_in_words,
)
from axformer.tasks.tag_schemes import chunks_of, count_chunks, in_scheme_of, is_chunk_scheme, looks_like_iob1

_IOB1 = (
    "chunks begin with I, and with B only after another of their kind, as in IOB1",
    "write B at the first word of each chunk (BIO), as it was trained",
)


def with_begins(tags: Sequence[str]) -> list[str]:
    """The tags of a sentence with B at the beginning of each chunk."""
    begins = {start for _, start, _ in chunks_of(tags)}
    return [f"B{tag[1:]}" if place in begins else tag for place, tag in enumerate(tags)]


@dataclass(frozen=True)
class TokenClassification:
    """One tag per word, read at the word's first token; the loss is the mean cross-entropy over a sample's words."""

    names: tuple[str, ...]
    """The model's tags in the order of their indices."""
    name: str = "token_classification"
    pooled: bool = False
    pipeline: str | None = "token-classification"

    @classmethod
    def of(cls, config: Any) -> "TokenClassification":
        """The task for a model's config."""
        return cls(ClassNames.of(config).names)

    def encode(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:
        require_fast(tokenizer, "which word a token is of")
        read = _tags(rows, ClassNames.of(config))
        kept = [index for index, tags in enumerate(read.tags) if any(tag != UNLABELLED for tag in tags)]
        if not kept:
            raise DataError(f"data file '{rows.source}' has no word with a tag in its {len(rows)} rows")
        notes = read.notes
        if len(kept) < len(rows):
            first = next((index for index, row in enumerate(kept) if index != row), len(kept))
            notes += (
                f"{len(rows) - len(kept)} rows have no word with a tag and are left out, the first is {rows.number(first + 1)}",
            )
            rows = rows.at(kept)
        tags = [read.tags[index] for index in kept]
        encoding, cut = _tokenized(rows, tokenizer, limits)
        labels = [_first_tokens(encoding.word_ids(index), tags[index]) for index in range(len(rows))]
        for row, label in enumerate(labels, start=1):
            if all(tag == UNLABELLED for tag in label):
                raise rows.error(row, "no word of it is left for the model; leave the row out, or raise max_length")
        encoded = _one_row_a_sample(encoding, labels, cut)
        found = {tag for row in tags for tag in row if tag != UNLABELLED}
        alike = f"only one tag, '{self.names[found.pop()]}'," if len(found) == 1 else None
        return replace(encoded, labels_as=read.reading, alike=alike, notes=notes, kept=kept)

    def inputs(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:  # noqa: ARG002
        """The words of all rows, also of those without a tag; the labels say only where a word begins."""
        encoding, cut = _tokenized(rows, tokenizer, limits)
        words = rows.text_lists("tokens", is_joined=True)
        begins = [_first_tokens(encoding.word_ids(row), [0] * len(words[row])) for row in range(len(rows))]
        return _one_row_a_sample(encoding, begins, cut)

    def losses(self, output: Any, batch: Batch) -> Tensor:
        losses = functional.cross_entropy(output.logits.transpose(1, 2), batch.labels, reduction="none")
        return losses.sum(dim=-1) / (batch.labels != UNLABELLED).sum(dim=-1)

    def predicted(self, output: Any, batch: Batch) -> Predicted:
        return where(output.logits, batch.labels != UNLABELLED)

    def answers(self, output: Any, batch: Batch) -> list[list[int]]:
        predicted, words = output.logits.argmax(dim=-1), batch.labels != UNLABELLED
        return [row[mask].tolist() for row, mask in zip(predicted, words, strict=True)]

    def statistics(self, answers: Sequence[list[int]], encoded: Encoded) -> np.ndarray:
        """Correct words and all words; for chunk tags also correct, predicted and expected chunks."""
        expected = [[tag for tag in label if tag != UNLABELLED] for label in encoded.labels]
        return np.array([self._counts(*pair) for pair in zip(expected, answers, strict=True)], dtype=float)

    def _counts(self, expected: list[int], predicted: list[int]) -> tuple[int, ...]:
        right = sum(tag == answer for tag, answer in zip(expected, predicted, strict=True))
        if not is_chunk_scheme(self.names):
            return right, len(expected)
        tags = self._named((expected, predicted))
        return (right, len(expected), *count_chunks(*tags))

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        right, words, *chunks = statistics.sum(axis=0).tolist()
        if not chunks:
            return {"accuracy": right / words}
        hits, claimed, truly = chunks
        return {
            "f1": f1(hits, claimed, truly),
            "accuracy": right / words,
            "precision": hits / claimed if claimed else 0.0,
            "recall": hits / truly if truly else 0.0,
        }

    def correct(self, statistics: np.ndarray) -> np.ndarray:
        """A sample is right if all its words are."""
        return np.asarray(statistics[:, 0] == statistics[:, 1])

    def guess(self, encoded: Encoded, config: Any) -> Guess:  # noqa: ARG002 - the protocol's signature
        return guess_of_choices(*_words(encoded), encoded.samples, self.names)

    def standing(self, answers: Sequence[list[int]], encoded: Encoded, config: Any) -> LabelAgreement:  # noqa: ARG002
        (expected, sample), predicted = _words(encoded), np.array([tag for row in answers for tag in row], dtype=int)
        causes = (
            f"whether the tags are counted as the model counts them ({order_in_words(self.names)}), whether the columns are "
            "the right ones, and whether the model was fine-tuned for these tags"
        )
        choices = Choices(expected, predicted, sample, encoded.samples, len(self.names))
        right = mean_by_sample(expected == predicted, sample, encoded.samples)
        scheme = (
            self._other_scheme(answers, encoded) if looks_like_iob1(self.names, self._named(encoded.labels)) else None
        )
        order = better_order(choices, encoded.inputs) if scheme is None else None
        return LabelAgreement(causes, right, agreement_of(choices), order, self.names, is_bar=False, scheme=scheme)

    def _named(self, rows: Sequence[Sequence[int]]) -> list[list[str]]:
        """Tags by their names, without those that count for nothing."""
        return [[self.names[tag] for tag in row if tag != UNLABELLED] for row in rows]

    def _other_scheme(self, answers: Sequence[list[int]], encoded: Encoded) -> str | None:
        """Why the tags are taken for IOB1, if the answers reliably fit better with B at the beginning of each chunk."""
        expected, predicted = self._named(encoded.labels), self._named(answers)
        begun = [with_begins(tags) for tags in expected]
        gains = [
            _share(one, row) - _share(other, row) for one, other, row in zip(begun, expected, predicted, strict=True)
        ]
        if not is_reliably_positive(np.array(gains)):
            return None
        return f"{_IOB1[0]}, where the model answers B; {_IOB1[1]}"


def _share(expected: Sequence[str], predicted: Sequence[str]) -> float:
    return sum(map(str.__eq__, expected, predicted)) / len(expected)


def _tokenized(rows: Rows, tokenizer: Any, limits: TokenLimits) -> tuple[Any, int]:
    return tokenize(rows, tokenizer, rows.text_lists("tokens", is_joined=True), None, limits, is_split_into_words=True)


def _one_row_a_sample(encoding: Any, labels: list[list[int]], cut: int) -> Encoded:
    """The encoding with labels of tokens, and of each row the places of the words that have one: those that are answered."""
    words = [
        [word for word, tag in zip(encoding.word_ids(row), tags, strict=True) if tag != UNLABELLED]
        for row, tags in enumerate(labels)
    ]
    return replace(one_row_a_sample(dict(encoding), labels, cut, per_token=True), reading=words)


def _words(encoded: Encoded) -> tuple[np.ndarray, np.ndarray]:
    """The tag of each word, and its sample."""
    tags = [[tag for tag in label if tag != UNLABELLED] for label in encoded.labels]
    sample = np.repeat(np.arange(len(tags)), [len(row) for row in tags])
    return np.array([tag for row in tags for tag in row], dtype=int), sample


@dataclass(frozen=True)
class _Tags:
    """The tags of all rows, read as one column."""

    tags: list[list[int]]
    reading: str
    notes: tuple[str, ...]


def _tags(rows: Rows, classes: ClassNames) -> _Tags:
    """One tag per word, ``UNLABELLED`` for ignored words."""
    lengths = list(map(len, rows.text_lists("tokens", is_joined=True)))
    given = rows.label_lists("tags", lengths)
    for row, (length, values) in enumerate(zip(lengths, given, strict=True), start=1):
        if length != len(values):
            raise rows.error(row, f"it has {length} tokens and {len(values)} tags; give each token one tag")
    counted = [[value for value in values if not _is_unlabelled(value)] for values in given]
    counted, notes = _in_scheme(counted, rows, classes)
    values = [value for row in counted for value in row]
    row_of = [row for row, one in enumerate(counted, 1) for _ in one]
    read = LabelColumn(values, rows, row_of, "tag", () if notes else rows.names_of("tags")).read(classes)
    indices = iter(read.indices)
    tags = [[UNLABELLED if _is_unlabelled(value) else next(indices) for value in values] for values in given]
    if looks_like_iob1(
        classes.names, [[None if tag == UNLABELLED else classes.names[tag] for tag in row] for row in tags]
    ):
        notes += (f"{_IOB1[0]}; if the model is one of BIO, as most are, {_IOB1[1]}",)
    return _Tags(tags, read.reading, (*read.notes, *notes))


def _in_scheme(given: list[list[Label]], rows: Rows, classes: ClassNames) -> tuple[list[list[Label]], tuple[str, ...]]:
    """Tags by their names in the scheme of the model, with a note; or as they are."""
    own = dict(enumerate(rows.names_of("tags")))
    named = [[own.get(tag, tag) if type(tag) is int else tag for tag in row] for row in given]
    texts = [[tag for tag in row if isinstance(tag, str)] for row in named]
    if texts != named:
        return given, ()
    try:
        found = in_scheme_of(classes.names, texts)
    except ValueError as error:
        raise DataError(f"data file '{rows.source}': its tags {error}") from None
    return (given, ()) if found is None else ([list(row) for row in found[0]], (f"tags {found[1]}",))


def _is_unlabelled(value: Label) -> bool:
    return value == UNLABELLED or value == str(UNLABELLED)


def _first_tokens(word_ids: list[int | None], tags: list[int]) -> list[int]:
    """The tag of each word at its first token; the other tokens are ignored."""
    before = [None, *word_ids[:-1]]
    return [
        UNLABELLED if word is None or word == last else tags[word] for word, last in zip(word_ids, before, strict=True)
    ]
