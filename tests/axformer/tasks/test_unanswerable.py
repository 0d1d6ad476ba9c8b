"""Questions without an answer, as SQuAD 2.0 has them, and that files without them are read as before."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForQuestionAnswering

from axformer.config import PassConfig
from axformer.data.reading import read_rows, rows_of
from axformer.data.written import words_of
from axformer.errors import DataError
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.methods.confirmation import CONFIRMING
from axformer.opening import Inputs
from axformer.pruning import prune
from axformer.run import PruningRun
from axformer.scores.measured import measure
from axformer.tasks.question_answering import QuestionAnswering, best_span
from axformer.tasks.right_answers import right_answers
from tests.axformer.tasks.test_losses import partly_answered_rows, samples_of
from tests.axformer.tasks.test_squad import WINDOW, scores
from tests.tiny_models import question_rows, tiny_config, tiny_head, tiny_tokenizer, write_rows

EMPTY = {"text": [], "answer_start": []}
NO_ANSWER = [EMPTY, None, [], "", {"text": None, "answer_start": None}]
PARTLY = "questions, some without an answer"


def with_answers(*cells: Any) -> list[dict[str, Any]]:
    return [row | {"answers": cell} for row, cell in zip(question_rows(len(cells)), cells, strict=True)]


GOOD = question_rows(1)[0]["answers"]


@pytest.mark.parametrize("cell", NO_ANSWER)
def test_every_form_of_no_answer_is_one(cell: Any, tmp_path: Path) -> None:
    records = with_answers(GOOD, cell)
    for rows in (rows_of(records), read_rows(str(write_rows(tmp_path / "rows.jsonl", records)))):
        assert QuestionAnswering.of(rows).may_abstain
        assert [len(found) for found in right_answers(rows, may_be_none=True).answers] == [1, 0]


def test_a_task_of_questions_with_answers_wants_one_for_each() -> None:
    assert not QuestionAnswering.of(rows_of(question_rows(3))).may_abstain
    assert not QuestionAnswering.of(None).may_abstain
    with pytest.raises(
        DataError, match="row 2: it has no answer, though all questions that decide have one; leave it out"
    ):
        right_answers(rows_of(with_answers(GOOD, None)), may_be_none=False)


@pytest.mark.parametrize("answers", [{"text": "word1", "answer_start": 0}, ["word1"], "word1"])
def test_answers_of_another_form_in_nested_files_are_read(answers: Any, tmp_path: Path) -> None:
    asked = [{"question": "word2", "answers": answers}, {"question": "word3", "answers": []}]
    nested = {"data": [{"paragraphs": [{"context": "word1", "qas": asked}]}]}
    (tmp_path / "squad.json").write_text(json.dumps(nested), encoding="utf-8")
    assert right_answers(read_rows(str(tmp_path / "squad.json")), may_be_none=True).answers == [[(0, "word1")], []]


def test_nested_files_without_answers_have_no_column_of_them(tmp_path: Path) -> None:
    asked = [{"question": "word2", "answer": {"text": "word1", "answer_start": 0}}]
    nested = {"data": [{"paragraphs": [{"context": "word1", "qas": asked}]}]}
    (tmp_path / "squad.json").write_text(json.dumps(nested), encoding="utf-8")
    with pytest.raises(
        DataError, match=r"has no column 'answers', it has answer, answer\.answer_start, answer\.text, context"
    ):
        right_answers(read_rows(str(tmp_path / "squad.json")), may_be_none=True)


def test_questions_of_which_none_has_an_answer_do_not_decide() -> None:
    model = tiny_head(AutoModelForQuestionAnswering, tiny_config())
    with pytest.raises(
        DataError, match="has no answer to any question in its 4 rows, and rows that decide must differ"
    ):
        prune(model, tiny_tokenizer(), with_answers(None, None, None, None))


def test_a_cell_that_holds_something_else_is_refused_all_the_same() -> None:
    with pytest.raises(DataError, match="row 1: column 'answers' holds 7, not an object"):
        right_answers(rows_of(with_answers(7, None)), may_be_none=True)


def test_the_span_of_no_answer_is_the_classification_token_in_every_window() -> None:
    _, samples = samples_of(PARTLY)
    encoded = samples.encoded
    assert len(encoded.labels) > encoded.samples, "there are windows"
    for sample, label in zip(encoded.sample_of_row, encoded.labels, strict=True):
        assert label[2] == 0
        if not encoded.reading.answers[sample]:
            assert label == (0, 0, 0)
    assert "8 of 12 questions have no answer" in encoded.notes[0]


def test_no_answer_is_given_where_nowhere_outdoes_every_span() -> None:
    span = {3: 1.0}, {4: 1.0}
    assert best_span([(WINDOW, scores(*span, nowhere=1.9))], may_be_empty=True) == (4, 11)
    assert best_span([(WINDOW, scores(*span, nowhere=2.1))], may_be_empty=True) == (0, 0)
    assert best_span([(WINDOW, scores(*span, nowhere=2.1))]) == (4, 11), "not where all have one"
    two = [(WINDOW, scores(*span, nowhere=5.0)), (WINDOW, scores({2: 0.0}, {2: 0.0}, nowhere=1.0))]
    assert best_span(two, may_be_empty=True) == (4, 11), "one window that is unsure is enough"


def official(predicted: list[str], golds: list[list[str]]) -> dict[str, float]:
    """As the program evaluate-v2.0.py of SQuAD scores, in percent there."""
    exact, overlap = [], []
    for prediction, answers in zip(predicted, golds, strict=True):
        kept = [answer for answer in answers if words_of(answer)] or [""]
        exact.append(max(float(words_of(answer) == words_of(prediction)) for answer in kept))
        overlap.append(max(one_f1(words_of(answer), words_of(prediction)) for answer in kept))
    has = np.array([bool(answers) for answers in golds])
    parts = {"answerable_f1": np.array(overlap)[has], "unanswerable_accuracy": np.array(exact)[~has]}
    means = {name: float(part.mean()) if len(part) else 0.0 for name, part in parts.items()}
    return {"exact_match": float(np.mean(exact)), "f1": float(np.mean(overlap)), **means}


def one_f1(gold: list[str], predicted: list[str]) -> float:
    shared = sum(min(gold.count(word), predicted.count(word)) for word in set(gold))
    if not gold or not predicted:
        return float(gold == predicted)
    if not shared:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(gold)
    return 2 * precision * recall / (precision + recall)


TEXTS = st.sampled_from(["the cat", "cat", "a dog ran", "the", "", "dog"])


@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS.filter(bool), max_size=3)), min_size=1, max_size=8))
def test_scores_are_those_of_the_official_program(cases: list[tuple[str, list[str]]]) -> None:
    predicted, golds = zip(*cases, strict=True)
    task = QuestionAnswering(may_abstain=True)
    statistics = np.array([task.scores(*case) for case in zip(predicted, golds, strict=True)], dtype=float)
    assert task.metrics(statistics) == pytest.approx(official(list(predicted), list(golds)))
    assert task.correct(statistics).sum() == pytest.approx(len(cases) * task.metrics(statistics)["exact_match"])


def test_answers_hold_the_logits_of_nowhere() -> None:
    model = tiny_head(AutoModelForQuestionAnswering, tiny_config())
    checkpoint = from_memory(model, tiny_tokenizer()).for_rows(rows_of(partly_answered_rows(12)))
    samples = prepare(rows_of(partly_answered_rows(12)), checkpoint, PassConfig(max_length=24)).samples
    found = measure(checkpoint.model, checkpoint.task, samples).answers
    with torch.inference_mode():
        for batch in samples.batches:
            output = checkpoint.model(**batch.inputs)
            for place, row in enumerate(batch.rows.tolist()):
                expected = float(output.start_logits[place, 0] + output.end_logits[place, 0])
                assert found[row].nowhere == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_a_pass_decides_and_measures_by_them() -> None:
    """Also on the rows that confirm, of which none need lack an answer."""
    settings = PassConfig(majority_fraction=0.2, confirm=0.25, max_length=32)
    rows = rows_of(partly_answered_rows(24))
    checkpoint = from_memory(tiny_head(AutoModelForQuestionAnswering, tiny_config()), tiny_tokenizer()).for_rows(rows)
    run = PruningRun(Inputs(checkpoint, prepare(rows, checkpoint, settings)), settings)
    assert any("16 of 24 questions have no answer" in note for note in run.notes)
    list(run.trials())
    measured = run.decisions.measured
    names = {"loss", "exact_match", "f1", "answerable_f1", "unanswerable_accuracy"}
    assert set(measured.figures[0][CONFIRMING]) == names
