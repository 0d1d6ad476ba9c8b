"""What each task makes of its rows, and which rows it refuses."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from axformer.data.encoding import UNLABELLED, Encoded, TokenLimits
from axformer.data.reading import rows_of
from axformer.errors import CheckpointError, DataError
from axformer.scores.measured import measure
from axformer.tasks.base import Task
from axformer.tasks.causal_lm import CausalLanguageModelling
from axformer.tasks.classification import Classification
from axformer.tasks.masked_lm import MASKED_SHARE, MaskedLanguageModelling, hidden_places
from axformer.tasks.multi_label import MultiLabelClassification
from axformer.tasks.multiple_choice import MultipleChoice
from axformer.tasks.question_answering import QuestionAnswering, SpanScores
from axformer.tasks.registry import task_of
from axformer.tasks.reranking import Reranking
from axformer.tasks.token_classification import TokenClassification
from tests.axformer.tasks.test_losses import CASES, TAGS, model_of, samples_of, tagged_config
from tests.tiny_models import MAX_TOKENS, WORDS, question_rows, tiny_config, tiny_rows, tiny_tokenizer

Record = dict[str, Any]
CONFIG = tagged_config()
TAGGER = TokenClassification.of(CONFIG)
GOOD_QUESTION = question_rows(1)[0]


def encode(task: Task, *records: Record, max_length: int | None = None, max_tokens: int | None = MAX_TOKENS) -> Encoded:
    return task.encode(rows_of(records), tiny_tokenizer(), CONFIG, TokenLimits(max_length, max_tokens))


def question(**changes: Any) -> Record:
    return {**GOOD_QUESTION, **changes}


def answers(text: Any, start: Any) -> Record:
    return question(context="word1 word2 word3", answers={"text": text, "answer_start": start})


LIST = {"query": "word1", "passages": ["word2", "word3"], "label": 0}
CHOICES = {"text": "word1", "choices": ["word2", "word3"], "label": 0}


@pytest.mark.parametrize(
    ("task", "record", "message"),
    [
        (
            TAGGER,
            {"text": "a", "label": 0},
            "has no column 'tokens', it has label, text; none of them holds a list of words",
        ),
        (TAGGER, {"tokens": 7, "tags": [0]}, "row 1: column 'tokens' holds 7, not a list of texts"),
        (TAGGER, {"tokens": ["word1"], "tags": ["B-Z"]}, r"row 1: tag 'B-Z' is unknown to the model; it knows 0 \(O\)"),
        (TAGGER, {"tokens": ["word1"], "tags": [5]}, "row 1: tag 5 is unknown to the model"),
        (TAGGER, {"tokens": ["word1", "word2"], "tags": [0]}, "row 1: it has 2 tokens and 1 tags"),
        (TAGGER, {"tokens": ["\u200b"], "tags": ["O"]}, "row 1: no word of it is left for the model"),
        (TAGGER, {"tokens": [], "tags": []}, "has no word with a tag in its 1 rows"),
        (TAGGER, {"tokens": ["word1"], "tags": [-100]}, "has no word with a tag in its 1 rows"),
        (TAGGER, {"tokens": ["word1", "word2"], "tags": ["O", 1]}, r"tags are neither all names nor all indices"),
        (QuestionAnswering(), {"text": "a", "label": 0}, "has no column 'context', it has label, text"),
        (QuestionAnswering(), question(answers=7), "column 'answers' holds 7, not an object"),
        (
            QuestionAnswering(),
            answers(["word2"], [5]),
            "answer 'word2' is not at character 5 of the context, ' word' is",
        ),
        (QuestionAnswering(), answers([], []), "row 1: it has no answer, though all questions that decide have one"),
        (QuestionAnswering(), answers(["word2"], []), "of equal lengths"),
        (QuestionAnswering(may_abstain=True), answers(["word2"], []), "of equal lengths"),
        (QuestionAnswering(), answers(["word2"], [-11]), "answer 'word2' at -11 is not a text with the character"),
        (QuestionAnswering(), question(question="word1 " * 100), "the question has 100 tokens, which leaves 25 of 128"),
        (MultipleChoice(), {"text": "a", "label": 0}, "has no column 'choices'"),
        (MultipleChoice(), {**CHOICES, "choices": ["word2"]}, "row 1: it has 1 choices; give at least two"),
        (
            MultipleChoice(),
            {**CHOICES, "label": 2},
            r"row 1: label 2 is unknown to rows of 2 choices; it knows 0 \(A\), 1 \(B\)",
        ),
        (MultipleChoice(), {**CHOICES, "label": "c"}, "row 1: label 'c' is unknown to rows of 2 choices"),
        (
            Reranking(),
            {**LIST, "passages": ["word1"]},
            "row 1: it has one passage, which leaves nothing to rank; give at",
        ),
        (Reranking(), {**LIST, "passages": []}, "row 1: it has no passage, which leaves nothing to rank"),
        (Reranking(), {**LIST, "passages": "word1"}, "row 1: column 'passages' holds 'word1', not a list of texts"),
        (
            Reranking(),
            {**LIST, "label": 2},
            "row 1: label 2 is none of its 2 passages, which count from 0; give the index",
        ),
        (Reranking(), {**LIST, "label": 0.5}, "row 1: label 0.5 is none of its 2 passages"),
        (Reranking(), {**LIST, "label": [0, 1, 0]}, "row 1: it has 2 passages and 3 grades; give one for each"),
        (
            Reranking(),
            {**LIST, "label": [1, -1]},
            "row 1: grade -1 is below 0; give 0 to a passage that is not relevant",
        ),
        (Reranking(), {**LIST, "label": [1, "good"]}, "row 1: label 'good' is not a number"),
        (Reranking(), {**LIST, "label": [0, 0]}, "no passage has a grade above 0; grades rise with relevance"),
        (Reranking(), {**LIST, "query": " "}, "row 1: column 'query' is empty"),
        (Reranking(), {"passages": ["word1", "word2"], "label": 0}, "has no column 'query', it has label, passages"),
        (Reranking(), {"query": "word1", "passages": ["word1", "word2"]}, "has no column 'label'"),
        (MultiLabelClassification(), {"text": "a", "label": 0}, "has no column 'labels'"),
        (
            MultiLabelClassification(),
            {"text": "a", "labels": 1},
            "row 1: column 'labels' holds 1, not a list of labels",
        ),
        (MultiLabelClassification(), {"text": "a", "labels": [9]}, "row 1: label 9 is unknown to the model"),
        (Classification(), {"tokens": ["a"], "tags": [0]}, "has no column 'text', it has tags, tokens"),
        (MaskedLanguageModelling(), {"text": "\ufffd"}, "row 1: it has no token that could be masked"),
        (MaskedLanguageModelling(), {"label": 1}, "has no column 'text', it has label"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_with_its_place(task: Task, record: Record, message: str) -> None:
    with pytest.raises(DataError, match=message):
        encode(task, record)


def test_rows_of_unequally_many_choices_are_refused() -> None:
    with pytest.raises(DataError, match="row 2: it has 3 choices, row 1 has 2; give all rows the same number"):
        encode(MultipleChoice(), CHOICES, {**CHOICES, "choices": ["word1"] * 3})


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("questions")])
def test_what_is_longer_than_the_model_takes_is_refused_until_it_is_told_to_cut(name: str) -> None:
    case = CASES[name]
    record = dict(case.records()[0])
    longer = {"text": "word1 " * 200, "tokens": ["word1"] * 200, "tags": ["O"] * 200, "choices": ["word1 " * 200] * 3}
    rows = rows_of([*case.records(), {**record, **{field: longer[field] for field in longer if field in record}}])
    task = task_of(case.auto_class, case.config(), rows)
    tokenizer = tiny_tokenizer()
    with pytest.raises(
        DataError, match=r"row 13: it has \d+ tokens, the model takes 128; shorten it, or set max_length=128"
    ):
        task.encode(rows, tokenizer, case.config(), TokenLimits(None, MAX_TOKENS))
    cut = task.encode(rows, tokenizer, case.config(), TokenLimits(MAX_TOKENS, MAX_TOKENS))
    assert (cut.cut, max(cut.lengths)) == (1, MAX_TOKENS)


def test_a_tag_is_at_the_first_token_of_its_word_only() -> None:
    tokenizer = tiny_tokenizer()
    record = {"tokens": ["word1", "word2-word3", "word4"], "tags": ["O", "B-X", "I-X"]}
    encoded = TAGGER.encode(rows_of([record]), tokenizer, CONFIG, TokenLimits())
    skip = UNLABELLED
    assert tokenizer.convert_ids_to_tokens(encoded.features["input_ids"][0])[2:5] == ["word2", "[UNK]", "word3"]
    assert encoded.labels == [[skip, 0, 1, skip, skip, 2, skip]]


def test_tags_that_mark_no_chunks_have_accuracy_alone() -> None:
    plain = TokenClassification.of(tiny_config(labels=3))
    encoded = Encoded({"input_ids": [[1, 2], [3, 4]]}, [[0, 1], [2, UNLABELLED]], [0, 1])
    statistics = plain.statistics([[0, 2], [2]], encoded)
    assert plain.metrics(statistics) == {"accuracy": 2 / 3}
    assert plain.correct(statistics).tolist() == [False, True]
    chunks = TokenClassification(tuple(TAGS)).statistics([[1, 2], [3]], Encoded({}, [[1, 2], [1, UNLABELLED]], [0, 1]))
    assert TAGGER.metrics(chunks) == pytest.approx({"accuracy": 2 / 3, "precision": 0.5, "recall": 0.5, "f1": 0.5})


def test_windows_overlap_and_hold_each_answer_somewhere() -> None:
    records = question_rows(20, words=60)
    encoded = encode(QuestionAnswering(), *records, max_length=32)
    assert encoded.samples == 20 < len(encoded.labels)
    assert max(encoded.lengths) == 32
    assert encoded.sample_of_row == sorted(encoded.sample_of_row)
    answered = {sample for sample, label in zip(encoded.sample_of_row, encoded.labels, strict=True) if any(label)}
    assert answered == set(range(20)), "an answer of three tokens fits into the overlap of eight"
    for record, window, ids, label in zip(
        [records[sample] for sample in encoded.sample_of_row],
        *(encoded.reading.windows, encoded.features["input_ids"], encoded.labels),
        strict=True,
    ):
        if any(label):
            text = tiny_tokenizer().decode(ids[label[0] : label[1] + 1])
            assert text == record["answers"]["text"][0]  # type: ignore[index]
        assert window.nowhere == 0


def test_a_model_that_takes_any_length_has_one_window_a_question() -> None:
    encoded = encode(QuestionAnswering(), *question_rows(3, words=300), max_tokens=None)
    assert encoded.sample_of_row == [0, 1, 2]
    assert min(encoded.lengths) > 300


def test_perfect_answers_score_one() -> None:
    task, samples = samples_of("questions in windows")
    perfect = []
    for start, end, _ in samples.encoded.labels:
        certain = 10.0 if (start, end) != (0, 0) else -10.0
        perfect.append(SpanScores(np.array([start]), np.array([certain]), np.array([end]), np.array([certain]), 0.0))
    statistics = task.statistics(perfect, samples.encoded)
    assert task.metrics(statistics) == {"exact_match": 1.0, "f1": 1.0}
    right = task.correct(statistics)
    assert right is not None
    assert right.all()


def test_padding_answers_no_question() -> None:
    task, samples = samples_of("questions, padded left")
    batch = samples.batches[0]
    shape = batch.inputs["input_ids"].shape
    output = type("Output", (), {"start_logits": torch.zeros(shape), "end_logits": torch.zeros(shape)})
    expected = [math.log(int(samples.lengths[row])) for row in batch.rows]
    assert task.losses(output, batch).tolist() == pytest.approx(expected)


def test_the_mask_is_fixed_falls_on_no_special_token_and_has_its_share() -> None:
    ids, special = [2, *range(5, 5 + len(WORDS)), 3], [1, *[0] * len(WORDS), 1]
    assert hidden_places(ids, special) == hidden_places(ids, special) <= set(range(1, len(ids) - 1))
    rows = np.random.default_rng(0).integers(5, 60, size=(300, 100)).tolist()
    share = np.mean([len(hidden_places(row, [0] * 100)) / 100 for row in rows])
    assert share == pytest.approx(MASKED_SHARE, abs=0.01)
    assert all(len(hidden_places([2, word, 3], [1, 0, 1])) == 1 for word in range(5, 60)), "one token in any case"


def test_masked_tokens_are_hidden_and_only_they_count() -> None:
    encoded = encode(MaskedLanguageModelling(), *tiny_rows(20))
    whole = tiny_tokenizer()([str(row["text"]) for row in tiny_rows(20)])["input_ids"]
    for ids, labels, tokens in zip(encoded.features["input_ids"], encoded.labels, whole, strict=True):
        hidden = [place for place, token in enumerate(ids) if token == tiny_tokenizer().mask_token_id]
        assert hidden
        assert [place for place, label in enumerate(labels) if label != UNLABELLED] == hidden
        assert [label if label != UNLABELLED else token for token, label in zip(ids, labels, strict=True)] == tokens


def test_perplexity_is_that_of_all_tokens_together() -> None:
    task, samples = samples_of("causal")
    predictions = measure(model_of("causal"), task, samples)
    tokens = samples.lengths - 1
    expected = math.exp(float((predictions.losses * tokens).sum() / tokens.sum()))
    assert task.metrics(task.statistics(predictions.answers, samples.encoded))["perplexity"] == pytest.approx(expected)
    assert CausalLanguageModelling().metrics(np.array([[1e9, 1, 0]]))["perplexity"] < math.inf


def test_multi_label_scores_have_known_values() -> None:
    task = MultiLabelClassification()
    statistics = np.array([[1, 0, 1, 0], [0, 1, 1, 1], [0, 0, 0, 0]], dtype=float)
    assert task.metrics(statistics) == pytest.approx({"accuracy": 1 / 3 * 2, "f1_micro": 0.8, "f1_macro": 5 / 6})


def test_a_tokenizer_that_cannot_do_it_is_refused() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.mask_token = None
    with pytest.raises(CheckpointError, match="the tokenizer has no mask token"):
        MaskedLanguageModelling().encode(rows_of([{"text": "word1"}]), tokenizer, CONFIG, TokenLimits())


def test_another_head_is_refused_with_those_that_are_supported() -> None:
    from transformers import AutoModelForImageClassification

    with pytest.raises(
        CheckpointError,
        match="models of AutoModelForImageClassification are not supported; supported are those of Auto",
    ):
        task_of(AutoModelForImageClassification, CONFIG)
