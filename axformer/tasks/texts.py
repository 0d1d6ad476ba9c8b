"""Tokenize texts and pairs of texts, for most tasks."""

from typing import Any

from axformer.data.encoding import Encoded, TokenLimits, tokenize, without_labels
from axformer.data.rows import Rows


def tokenize_texts(rows: Rows, tokenizer: Any, limits: TokenLimits, **options: Any) -> tuple[dict[str, list[Any]], int]:
    """The features of each row's ``text``, with its ``text_pair`` if the file has one, and the number of rows cut.

    Raises:
        DataError: a column is missing or holds no texts, or a row does not fit the model.
    """
    pairs = rows.texts("text_pair") if rows.has("text_pair") else None
    encoding, cut = tokenize(rows, tokenizer, rows.texts("text"), pairs, limits, **options)
    return dict(encoding), cut


class TextInputs:
    """Of a task that reads texts or pairs of texts."""

    def inputs(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:  # noqa: ARG002
        """The texts without their labels."""
        features, cut = tokenize_texts(rows, tokenizer, limits)
        return without_labels(features, cut=cut)
