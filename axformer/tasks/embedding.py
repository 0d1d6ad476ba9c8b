"""Sentence embeddings: a vector for each text, measured by what a search finds with it.

No label is needed. The untouched model's vectors stand in the place of labels, and the answer to a text is the text that lies
nearest to it: among all others, or, for rows of two texts, among all second texts. Such a row is a query and a passage
(``question`` and ``context``, with the model's prompts for them), or any pair; a number beside it says how alike they are. A
label beside a single text is its class, which a linear probe is to tell by the vector.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from axformer.architectures.embedder import VECTOR, spec_of
from axformer.data.batches import Batch
from axformer.data.encoding import Encoded, TokenLimits, bytes_of, firsts, most_tokens, tokenize, without_labels
from axformer.data.rows import Rows
from axformer.errors import DataError
from axformer.tasks.divergence import OutcomeKind, Predicted, each_row
from axformer.tasks.guess import Guess
from axformer.tasks.numbers import correlations, numbers_in
from axformer.tasks.standing import LabelAgreement
from axformer.wire.metrics import EMBEDDING, OLD_INDEX, SAME_NEAREST

NEAREST = 10
"""Neighbours that are compared, and places of a result list that count."""
_AT_ONCE = 1024
"""Queries whose similarities are in memory together."""
_COLUMNS = 9
"""Of the statistics: the nearest text by both models, the share of the ten nearest that stay, the gain of the partner, the
number beside a pair, its similarity; and, where the new model's queries search the untouched one's vectors, the share and the
gain again; whether a linear probe is right."""
FOLDS = 5
"""Parts of the rows for a linear probe. Each is answered by a classifier that was fitted to the others."""
ITERATIONS = 100


@dataclass(frozen=True)
class Search:
    """Queries over a corpus; copies of a text are in the corpus once."""

    queries: list[int]
    """The model row of each query."""
    corpus: list[int]
    """The model row of each text that is searched."""
    own: list[int]
    """For each query the place in the corpus of what belongs to it: itself or its partner."""
    is_itself: bool
    """Whether queries are texts of the corpus, and none of them finds itself."""

    @property
    def depth(self) -> int:
        """Neighbours that a query has, at most :data:`NEAREST`."""
        return min(NEAREST, len(self.corpus) - self.is_itself)

    def nearest(self, vectors: Tensor, measure: str, index: Tensor | None = None) -> Tensor:
        """The nearest texts of each query, best first, by their places in the corpus; shape (queries, depth).

        Args:
            vectors: of all model rows, shape (model rows, numbers).
            measure: ``cosine``, ``dot`` or ``euclidean``.
            index: the vectors that are searched, of the same shape, where another model made them.
        """
        known, asked = (vectors if index is None else index)[self.corpus], vectors[self.queries]
        if measure == "cosine":
            known, asked = functional.normalize(known, dim=-1), functional.normalize(asked, dim=-1)
        offset = known.square().sum(dim=-1) / 2 if measure == "euclidean" else known.new_zeros(len(known))
        own, found = torch.tensor(self.own), []
        for start in range(0, len(asked), _AT_ONCE):
            scores = asked[start : start + _AT_ONCE] @ known.T - offset
            if self.is_itself:
                scores.scatter_(1, own[start : start + _AT_ONCE, None], -torch.inf)
            found.append(scores.topk(self.depth, dim=-1).indices)
        return torch.cat(found)


def overlap(first: Tensor, second: Tensor) -> np.ndarray:
    """The share of each row's numbers that are also in the other's row; shape (rows,)."""
    return (first[:, :, None] == second[:, None, :]).any(dim=-1).double().mean(dim=-1).numpy()


def gains(found: Tensor, own: list[int]) -> np.ndarray:
    """The discounted gain of each query's one right text, 0 where it is not found (nDCG with one relevant text)."""
    hits = (found == torch.tensor(own)[:, None]).double().numpy()
    return np.asarray(hits @ (1 / np.log2(np.arange(found.shape[1]) + 2)))


class SentenceEmbedding:
    """A vector for each text; the loss is half the squared distance to the untouched model's, 1 - cosine for length 1."""

    name = EMBEDDING
    pooled = False
    pipeline = None

    def __init__(self, config: Any, *, by_partners: bool = False) -> None:
        """
        Args:
            config: the model's.
            by_partners: whether a certificate is about how well first texts find their partners, or how well numbers beside the
                pairs are met, and not about whether the nearest text stays.
        """
        self.by_partners = by_partners
        spec = spec_of(config)
        assert spec is not None, "an embedder's configuration says how it embeds"
        self.measure = spec.similarity or "cosine"
        self.numbers = spec.size(config.hidden_size)

    def encode(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:
        encoded = self.inputs(rows, tokenizer, config, limits)
        if not rows.has("label"):
            return encoded
        read, problem = (
            (numbers_in, "no numbers that say how alike two texts are")
            if are_pairs(rows)
            else (classes_in, f"not two or more classes with {FOLDS} texts or more each")
        )
        try:
            return replace(encoded, reading=read(rows))
        except DataError:
            return replace(encoded, notes=(f"its labels are {problem}, and are not read",))

    def inputs(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:
        spec, columns = spec_of(config), _columns_of(rows)
        assert spec is not None, "it was there when the task was made"
        prompts = {
            "question": spec.prompt("query"),
            "context": spec.prompt("document", "passage", "corpus"),
        }
        parts = [[prompts.get(name, spec.prompt()) + text for text in rows.texts(name)] for name in columns]
        texts = [text for row in zip(*parts, strict=True) for text in row]
        cut_at = replace(
            limits, max_length=most_tokens(tokenizer, spec.max_length, limits.max_length, limits.max_tokens)
        )
        row_of = [place // len(columns) for place in range(len(texts))]
        encoding, cut = tokenize(rows, tokenizer, texts, None, cut_at, sample_of_row=row_of)
        return without_labels(dict(encoding), row_of, cut)

    def losses(self, output: Any, batch: Batch) -> Tensor:
        wanted, found = self._scaled(batch.labels), self._scaled(output[VECTOR])
        squared = (wanted - found).square().sum(dim=-1)
        return squared / (2 * wanted.square().sum(dim=-1).clamp(min=torch.finfo(wanted.dtype).tiny))

    def _scaled(self, vectors: Tensor) -> Tensor:
        return functional.normalize(vectors, dim=-1) if self.measure == "cosine" else vectors

    def predicted(self, output: Any, batch: Batch) -> Predicted:  # noqa: ARG002 - the protocol's signature
        """Numbers whose divergence is 1 - cosine for the cosine."""
        return each_row(self._scaled(output[VECTOR]) * self.numbers**0.5, OutcomeKind.NUMBERS)

    def answers(self, output: Any, batch: Batch) -> list[Tensor]:  # noqa: ARG002 - the protocol's signature
        return list(output[VECTOR].float().cpu().unbind())

    def statistics(self, answers: Sequence[Tensor], encoded: Encoded) -> np.ndarray:
        """See :data:`_COLUMNS`; numbers that the rows do not give are NaN.

        Raises:
            DataError: there are too few different texts to search.
        """
        search, after, before = _search_in(encoded), torch.stack(list(answers)), torch.stack(encoded.labels)
        if search.depth < NEAREST:
            raise DataError(
                f"{len(search.corpus)} different texts are too few to tell what stays near: the {NEAREST} nearest of each are "
                f"compared; give more than {NEAREST}, and twice as many where half of them only calibrates"
            )
        found, wanted = search.nearest(after, self.measure), search.nearest(before, self.measure)
        table = np.full((encoded.samples, _COLUMNS), np.nan)
        mixed = search.nearest(after, self.measure, index=before)
        table[:, 0], table[:, 1], table[:, 2] = found[:, 0], wanted[:, 0], overlap(found, wanted)
        table[:, 6] = overlap(mixed, wanted)
        if search.is_itself:
            if encoded.reading is not None:
                table[:, 8] = right_by_probe(self._scaled(after), encoded.reading, search.own)
            return table
        if encoded.reading is None:
            table[:, 3], table[:, 7] = gains(found, search.own), gains(mixed, search.own)
        else:
            table[:, 4], table[:, 5] = encoded.reading, functional.cosine_similarity(after[::2], after[1::2])
        return table

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        found = {SAME_NEAREST: float(self.correct(statistics).mean()), "same_10": float(statistics[:, 2].mean())}
        found["old_index_same_10"] = float(statistics[:, 6].mean())
        gained, scores, probed = statistics[:, 3], statistics[:, 4:6], statistics[:, 8]
        if not np.isnan(probed).any():
            found["probe_accuracy"] = float(probed.mean())
        if not np.isnan(gained).any():
            found |= {"ndcg_10": float(gained.mean()), "recall_10": float((gained > 0).mean())}
            found[OLD_INDEX] = float(statistics[:, 7].mean())
        if not np.isnan(scores).any():
            found["spearman"] = correlations(scores[:, :1], scores[:, 1:])["spearman"]
        return found

    def gained(self, statistics: np.ndarray) -> np.ndarray:
        """The gain of each first text's partner, between 0 and 1; its mean is nDCG@10."""
        return np.asarray(statistics[:, 3])

    def scored(self, statistics: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number beside each pair, and its cosine."""
        return np.asarray(statistics[:, 4]), np.asarray(statistics[:, 5])

    def correct(self, statistics: np.ndarray) -> np.ndarray:
        """Whether the nearest text is still the same."""
        return np.asarray(statistics[:, 0] == statistics[:, 1])

    def guess(self, encoded: Encoded, config: Any) -> Guess:  # noqa: ARG002 - the protocol's signature
        """The mean vector for every text."""
        vectors = self._scaled(torch.stack(encoded.labels)).double()
        squared = (vectors - vectors.mean(dim=0)).square().sum(dim=-1) / (2 * vectors.square().sum(dim=-1))
        sums = np.bincount(encoded.sample_of_row, weights=squared.numpy())
        return Guess(losses=sums / np.bincount(encoded.sample_of_row))

    def standing(self, answers: Sequence[Any], encoded: Encoded, config: Any) -> LabelAgreement:  # noqa: ARG002
        return LabelAgreement("whether these are texts that the model was made for")


def are_pairs(rows: Rows) -> bool:
    """Whether the rows hold two texts that belong together."""
    return len(_columns_of(rows)) == 2


def _columns_of(rows: Rows) -> tuple[str, ...]:
    """The columns of the texts: one, or two that belong together."""
    if rows.has("question") and rows.has("context") and not rows.has("text"):
        return "question", "context"
    return ("text", "text_pair") if rows.has("text_pair") else ("text",)


def _search_in(encoded: Encoded) -> Search:
    """The search that the rows describe: first texts among second ones, or each text among all others."""
    each = len(encoded.sample_of_row) // encoded.samples
    queries = list(range(0, len(encoded.sample_of_row), each))
    texts = list(range(each - 1, len(encoded.sample_of_row), each))
    first = firsts(bytes_of(encoded.features["input_ids"][row]) for row in texts)
    corpus = sorted(set(first))
    place = {text: index for index, text in enumerate(corpus)}
    return Search(queries, [texts[text] for text in corpus], [place[text] for text in first], is_itself=each == 1)


def classes_in(rows: Rows) -> list[int]:
    """The class of each row, counted from 0 in the order of their names.

    Raises:
        DataError: a label is no name or number, there is one class alone, or a class has fewer than :data:`FOLDS` rows.
    """
    names = [str(label) for label in rows.labels("label")]
    known, classes, counts = np.unique(names, return_inverse=True, return_counts=True)
    if len(known) < 2 or counts.min() < FOLDS:
        raise DataError(
            f"data file '{rows.source}': a linear probe takes two classes or more with {FOLDS} rows or more each"
        )
    found: list[int] = classes.tolist()
    return found


def right_by_probe(vectors: Tensor, classes: Sequence[int], texts: Sequence[int]) -> np.ndarray:
    """Which rows a linear classifier answers rightly that was fitted to other rows; 1 or 0, shape (rows,). All are NaN where a
    class has fewer than :data:`FOLDS` different texts.

    The classifier is scikit-learn's logistic regression of at most 100 iterations, as MTEB has it (Muennighoff and others,
    2023), but cross-validated on the rows that are given, so that it needs no others.

    Args:
        vectors: of the rows, shape (rows, numbers); numbers that are none, as of a training that diverged, count as 0.
        classes: of the rows, from 0.
        texts: equal for copies of a text, which stay in one part.
    """
    from sklearn.exceptions import ConvergenceWarning  # slow to import, and only probes need it
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict

    wanted, inputs = np.array(classes), np.nan_to_num(vectors.double().numpy(), posinf=0.0, neginf=0.0)
    if np.unique(np.unique([classes, texts], axis=1)[0], return_counts=True)[1].min() < FOLDS:
        return np.full(len(wanted), np.nan)
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0)  # the same parts for every model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # some iterations are what is asked for
        found = cross_val_predict(LogisticRegression(max_iter=ITERATIONS), inputs, wanted, groups=texts, cv=folds)
    return np.asarray(found == wanted, dtype=float)
