"""Rerankers: a score for each passage of a query, whatever else is in its list, and the best passage as the answer."""

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

import axformer
from axformer.config import make_config
from axformer.data.columns import OWN_ANSWERS
from axformer.data.encoding import Encoded
from axformer.data.reading import rows_of
from axformer.errors import CheckpointError
from axformer.forms.kinds import COMPACT, ONNX
from axformer.intake.checkpoint import Checkpoint, from_memory, load_checkpoint
from axformer.intake.dataset import DataSet, prepare
from axformer.model.compact import compact
from axformer.model.masking import masked
from axformer.run import PruningRun
from axformer.scores.answer_sheets import AnsweringModel, ConfirmingRows, sheet_of
from axformer.scores.labelling import choices_of, label_of, p_value_of
from axformer.scores.measured import measure
from axformer.scores.own_answers import with_own_answers
from axformer.scores.task_tests import paired_test
from axformer.tasks.reranking import Reranking
from axformer.wire.run import read_run
from tests.axformer.test_unlabelled import shaken, without_answers
from tests.family_cases import some_plan
from tests.plain import PlainEvaluator
from tests.tiny_families import tiny_family_model, tiny_family_tokenizer
from tests.tiny_models import list_rows, save_tiny_checkpoint, tiny_config, write_rows

CONFIG = make_config("smallest", {"max_length": 24, "batch_tokens": 80, "calibrate_rows": 50})
ROWS = list_rows(120)


def checkpoint_of(family: str, outputs: int = 1) -> Checkpoint:
    model = tiny_family_model(family, AutoModelForSequenceClassification, num_labels=outputs)
    return from_memory(model, tiny_family_tokenizer(family)).for_rows(rows_of(ROWS))


def scores_of(model: Any, checkpoint: Checkpoint, rows: list[dict[str, Any]]) -> torch.Tensor:
    """The logits of pairs, each alone."""
    found = []
    with torch.inference_mode():
        for row in rows:
            for passage in row["passages"]:
                pair = checkpoint.tokenizer(row["query"], passage, truncation=True, max_length=24, return_tensors="pt")
                found.append(model(**pair).logits[0, 0])
    return torch.stack(found)


@pytest.mark.parametrize("family", ["bert", "gpt2", "xlnet"])
def test_scores_are_the_same_masked_and_removed_and_in_any_batch_and_list(family: str) -> None:
    checkpoint, rows, plan = checkpoint_of(family), ROWS[:8], some_plan(1)
    assert isinstance(checkpoint.task, Reranking)
    data = prepare(rows_of(rows), checkpoint, CONFIG)
    assert len(data.samples.batches) > 1
    small = compact(checkpoint.model, checkpoint.architecture, plan)
    removed = measure(small, checkpoint.task, data.samples)
    with masked(checkpoint.model, checkpoint.architecture, plan):
        alone = scores_of(checkpoint.model, checkpoint, rows)
    torch.testing.assert_close(torch.tensor(removed.answers), alone, rtol=1e-4, atol=1e-5)
    plain = PlainEvaluator(checkpoint.model, checkpoint.architecture, checkpoint.task, data.samples)
    torch.testing.assert_close(removed.losses, plain.losses(plan), rtol=1e-4, atol=1e-5)
    shorter = [{**row, "passages": row["passages"][:2], "label": 0} for row in rows]
    fewer = measure(small, checkpoint.task, prepare(rows_of(shorter), checkpoint, CONFIG).samples).answers
    firsts = np.flatnonzero(np.diff(data.samples.encoded.sample_of_row, prepend=-1)).tolist()
    kept = [removed.answers[first + place] for first in firsts for place in (0, 1)]
    np.testing.assert_allclose(fewer, kept, rtol=1e-4, atol=1e-5)


def test_a_run_without_labels_resumes_and_its_forms_rank_alike(tmp_path: Path) -> None:
    asked = {
        "checkpoint": str(save_tiny_checkpoint(tmp_path / "ranker", tiny_config(labels=1))),
        "unlabelled": str(write_rows(tmp_path / "rows.jsonl", without_answers(ROWS[:80]))),
        "test": str(write_rows(tmp_path / "test.jsonl", ROWS[80:])),
        "goal": "operations=1.5",
        "forms": [COMPACT, ONNX],
        "config": {"calibrate_rows": 30, "budgets": [0.6], "table_rows": 20},
    }
    run = PruningRun.open(read_run(asked))
    run.look()
    trials = list(run.trials())
    report = run.publish(tmp_path / "result", asked["forms"])
    assert report["task"] == "reranking"
    assert report["base"]["unlabelled"]["accuracy"] == 1.0
    assert 0.0 < report["pruned"]["unlabelled"]["accuracy"] < 1.0
    assert set(report["pruned"]["test"]) == {"loss", "accuracy", "ndcg_10", "mrr_10"}
    forms = {form["name"]: form for form in report["forms"]}
    assert forms[ONNX]["test"] == pytest.approx(forms[COMPACT]["test"], abs=1e-5)
    card = (tmp_path / "result" / "hub" / "README.md").read_text(encoding="utf-8")
    assert "text-ranking" in card
    assert '("a query", "a passage", return_tensors="np")' in card

    whole = load_checkpoint(asked["checkpoint"]).for_rows(rows_of(ROWS))
    data, loaded = prepare(rows_of(ROWS), whole, CONFIG), axformer.load(tmp_path / "result" / "model")
    answers = [measure(model, whole.task, data.samples).answers for model in (run.model(), loaded)]
    np.testing.assert_allclose(*answers, rtol=1e-4, atol=1e-5)
    other = PruningRun.open(read_run(asked))
    resumed = list(other.trials(trials[: len(trials) // 2]))
    assert [trial.loss for trial in resumed] == [trial.loss for trial in trials]


def table_of(scores: list[list[float]], labels: list[list[float]]) -> np.ndarray:
    """The statistics of lists with these scores and labels."""
    sample_of_row = [row for row, one in enumerate(labels) for _ in one]
    encoded = Encoded({"input_ids": [[0]] * len(sample_of_row)}, list(chain.from_iterable(labels)), sample_of_row)
    return Reranking().statistics(list(chain.from_iterable(scores)), encoded)


def test_figures_have_known_values() -> None:
    table = table_of([[1.0, 3.0, 2.0], [2.0, 1.0]], [[1.0, 0.0, 0.5], [1.0, 0.0]])
    gain = (0.5 / np.log2(3) + 1.0 / 2) / (1 + 0.5 / np.log2(3))
    np.testing.assert_allclose(table, [[0.0, gain, 0.5], [1.0, 1.0, 1.0]])
    assert Reranking().metrics(table) == pytest.approx({"accuracy": 0.5, "ndcg_10": (1 + gain) / 2, "mrr_10": 0.75})
    beyond = table_of([[float(-place) for place in range(12)]], [[0.0] * 11 + [1.0]])
    np.testing.assert_array_equal(beyond, [[0.0, 0.0, 0.0]])


def test_equal_scores_find_nothing_that_stands_first() -> None:
    np.testing.assert_array_equal(table_of([[1.0] * 3], [[1.0, 0.0, 0.0]])[:, 0], [0.0])


def test_positive_and_negative_passages_are_a_list_and_rows_without_a_relevant_one_are_left_out() -> None:
    checkpoint = checkpoint_of("bert")
    rows = [{"query": "word1", "positive": positive, "negative": ["word3"]} for positive in (["word2"], "word4")]
    one = prepare(rows_of(rows), checkpoint, CONFIG).samples.encoded
    assert (one.labels, one.sample_of_row) == ([1.0, 0.0, 1.0, 0.0], [0, 0, 1, 1])
    irrelevant = {"query": "word1", "passages": ["word2", "word3"], "label": [0, 0]}
    data = prepare(rows_of([irrelevant, {**irrelevant, "label": [2, 1]}]), checkpoint, CONFIG)
    assert (data.samples.encoded.labels, data.samples.encoded.kept, len(data.rows)) == ([1.0, 0.5], [1], 1)
    assert data.samples.encoded.notes == ("1 rows have no passage with a grade above 0 and are left out",)


def test_lists_of_positive_and_negative_passages_count_and_not_a_column_called_label() -> None:
    rows = [{"query": "word1", "positive": ["word2"], "negative": ["word3"], "label": 1}]
    assert prepare(rows_of(rows), checkpoint_of("bert"), CONFIG).samples.encoded.labels == [1.0, 0.0]


def test_pairs_are_cut_where_the_tokenizer_says() -> None:
    checkpoint = checkpoint_of("bert")
    checkpoint.tokenizer.model_max_length = 9
    rows = [{"query": "word1 word2", "passages": ["word3 " * 10, "word4"], "label": 1}]
    encoded = prepare(rows_of(rows), checkpoint, make_config("smallest", {})).samples.encoded
    assert ([len(one) for one in encoded.features["input_ids"]], encoded.cut) == ([9, 6], 1)


def with_copies(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lists in which every other one has each passage twice, the copies last."""
    return [{**row, "passages": row["passages"] * (1 + place % 2)} for place, row in enumerate(rows)]


def test_copies_of_a_passage_are_one_answer() -> None:
    checkpoint = checkpoint_of("bert")
    once, twice = (prepare(rows_of(rows), checkpoint, CONFIG) for rows in (ROWS, with_copies(ROWS)))
    for one, other in zip(measured(checkpoint, once), measured(checkpoint, twice), strict=True):
        np.testing.assert_array_equal(one.right, other.right)
    own = with_own_answers(rows_of(without_answers(with_copies(ROWS))), None, checkpoint, CONFIG)
    plain = with_own_answers(rows_of(without_answers(ROWS)), None, checkpoint, CONFIG)
    before, after = zip(measured(checkpoint, plain), measured(checkpoint, own), strict=True)
    assert before[0].right.all()
    assert before[1].right.all()
    np.testing.assert_array_equal(after[0].right, after[1].right)


def test_several_outputs_rank_nothing() -> None:
    with pytest.raises(
        CheckpointError, match="takes a model with one output, their score, and this one has 2; give rows"
    ):
        checkpoint_of("bert", outputs=2)


def measured(checkpoint: Checkpoint, data: DataSet) -> list[Any]:
    """The untouched model and one near it on the rows."""
    models = (checkpoint.model, shaken(checkpoint.model))
    return [measure(model, checkpoint.task, data.samples) for model in models]


@pytest.mark.parametrize("rows", [ROWS, with_copies(ROWS)], ids=["different passages", "copies"])
def test_with_all_labels_a_sheet_is_the_paired_test_and_without_any_never_kinder(rows: list[dict[str, Any]]) -> None:
    checkpoint = checkpoint_of("bert")
    labelled = prepare(rows_of(rows), checkpoint, CONFIG)
    own = with_own_answers(rows_of(without_answers(rows)), None, checkpoint, CONFIG)
    assert own.samples.encoded.labels_as == OWN_ANSWERS
    first, other = measured(checkpoint, own)
    assert first.right.all()
    models = [AnsweringModel(1, COMPACT, 2.0, [other])]
    sheet = sheet_of(ConfirmingRows(None, own), [first], models, checkpoint.model.config, 20)
    places = {key.hex(): place for place, key in enumerate(labelled.samples.encoded.keys)}
    assert sheet.changed
    assert choices_of(sheet, sheet.changed[0]) == rows[places[sheet.changed[0].id]]["passages"]
    truth = {}
    for row in sheet.changed:
        right = rows[places[row.id]]["passages"][rows[places[row.id]]["label"]]
        copies = [place for place, passage in enumerate(row.choices) if passage == right]
        truth[row.id] = label_of(sheet, row, copies[0])
        assert {label_of(sheet, row, place) for place in copies} == {truth[row.id]}
    before, after = measured(checkpoint, labelled)
    full = p_value_of(sheet, sheet.models[0], truth, 0.2)
    assert full == paired_test(before.votes, checkpoint.task, 20).p_value(after.votes)
    assert p_value_of(sheet, sheet.models[0], {}, 0.2) >= full


def test_any_of_several_right_passages_is_as_good_as_the_first() -> None:
    checkpoint = checkpoint_of("bert")
    rows = [{**row, "label": [1] * len(row["passages"])} for row in ROWS]
    labelled, own = prepare(rows_of(rows), checkpoint, CONFIG), rows_of(without_answers(list_rows(4, seed=1)))
    sets = [labelled, with_own_answers(own, None, checkpoint, CONFIG)]
    first, other = zip(*(measured(checkpoint, data) for data in sets), strict=True)
    models = [AnsweringModel(1, COMPACT, 2.0, other)]
    sheet = sheet_of(ConfirmingRows(*sets), first, models, checkpoint.model.config, 20)
    assert all(row.label is None for row in sheet.changed)
