"""Data whose batches hold texts of several lengths, so that there is padding."""

from functools import cache

from axformer.config import PassConfig
from axformer.data.reading import rows_of
from axformer.intake.dataset import DataSet, prepare
from tests.family_cases import SETTINGS, Case, checkpoint_of
from tests.tiny_models import question_rows

MAX_LENGTH = 24


@cache
def uneven_data(case: Case, batch_tokens: int = 80) -> DataSet:
    """Data for a model; with one token a batch every row is a batch of its own."""
    rows = SETTINGS[case.task][2]
    if case.task == "question_answering":
        rows = [row for words in (6, 9, 12, 30) for row in question_rows(3, words=words)]
    return prepare(rows_of(rows), checkpoint_of(case), PassConfig(batch_tokens=batch_tokens, max_length=MAX_LENGTH))
