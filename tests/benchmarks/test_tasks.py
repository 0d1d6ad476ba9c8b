"""Every task: a tiny model learns a rule that the rows follow, and the saved checkpoint measures it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, BertModel

from benchmarks.finetune import finetune
from benchmarks.measure import measure
from benchmarks.rows import ChoiceRow, LabelsRow, QuestionRow, TagsRow, TextRow, read_rows, write_rows
from benchmarks.tasks.answering import Answering, answers
from benchmarks.tasks.registry import TASKS, task_named
from benchmarks.tasks.tagging import spans
from benchmarks.training import Recipe
from tests.tiny_models import MAX_TOKENS, WORDS, tiny_config, tiny_tokenizer

RECIPE = Recipe(epochs=15, batch_size=8, learning_rate=0.003, threads=1, max_length=MAX_TOKENS)
ANSWER = "word1"


def question(index: int, padding: int = 3) -> QuestionRow:
    """A context in which one word, always the same, is the answer."""
    before = " ".join(WORDS[2 + (index + step) % 50] for step in range(index % padding))
    after = " ".join(WORDS[2 + (index * step) % 50] for step in range(1, 4))
    context = f"{before} {ANSWER} {after}".strip()
    return QuestionRow("word0", context, {"text": [ANSWER], "answer_start": [context.index(f"{ANSWER} ")]})


def choice(index: int) -> ChoiceRow:
    choices = [WORDS[2 + (index + step) % 50] for step in range(3)]
    choices[index % 3] += f" {ANSWER}"
    return ChoiceRow("word0", choices, index % 3)


def tags(index: int) -> TagsRow:
    words = [WORDS[(index + step) % 4] for step in range(1 + index % 5)]
    return TagsRow(words, [{"word0": "B-X", "word1": "I-X"}.get(word, "O") for word in words])


LEARNED: dict[str, tuple[list[Any], str, float]] = {
    "multi-label": (
        [
            LabelsRow(f"word{index % 2} word{2 + index % 3}", [["a", "b"][index % 2], *["c"] * (index % 3 == 0)])
            for index in range(48)
        ],
        "f1_micro",
        0.95,
    ),
    "tagging": ([tags(index) for index in range(64)], "f1", 0.8),
    "question-answering": ([question(index) for index in range(64)], "exact_match", 0.9),
    "multiple-choice": ([choice(index) for index in range(64)], "accuracy", 0.9),
}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A tiny model without a head, as it comes from pre-training."""
    torch.manual_seed(0)
    BertModel(tiny_config(layers=2)).save_pretrained(tmp_path / "base")
    tiny_tokenizer().save_pretrained(tmp_path / "base")
    return tmp_path / "base"


@pytest.mark.parametrize("name", LEARNED)
def test_a_task_learns_what_its_rows_follow(name, base, tmp_path):
    rows, metric, least = LEARNED[name]
    write_rows(tmp_path / "rows.jsonl", rows)
    assert read_rows(tmp_path / "rows.jsonl", task_named(name).form) == rows
    finetune(base, task_named(name), rows, tmp_path / "out", RECIPE)
    assert measure(tmp_path / "out", task_named(name), rows, MAX_TOKENS)[metric] >= least


def test_a_masked_language_model_learns_which_words_go_together(base, tmp_path):
    task = task_named("masked-lm")
    rows = [TextRow(" ".join([WORDS[index % 4]] * 6)) for index in range(64)]
    finetune(base, task, rows, tmp_path / "out", RECIPE)
    figures = measure(tmp_path / "out", task, rows, MAX_TOKENS)
    assert figures["perplexity"] < len(WORDS) / 4
    assert measure(tmp_path / "out", task, rows, MAX_TOKENS) == figures  # the mask is always the same


def test_the_head_names_its_labels(base, tmp_path):
    finetune(base, task_named("tagging"), [tags(index) for index in range(8)], tmp_path / "out", Recipe(epochs=1))
    assert json.loads((tmp_path / "out" / "config.json").read_text())["label2id"] == {"B-X": 0, "I-X": 1, "O": 2}


@pytest.mark.parametrize("max_length", [MAX_TOKENS, 80])
def test_the_target_of_a_window_is_the_answer_or_its_first_token(max_length):
    tokenizer, task = tiny_tokenizer(), Answering()
    rows = [question(index, padding=120) for index in (0, 5, 60, 110)]
    inputs = task.encode(tokenizer, rows, None, max_length)
    pointed = [
        tokenizer.decode(window[start : stop + 1])
        for window, start, stop in zip(
            inputs["input_ids"], inputs["start_positions"], inputs["end_positions"], strict=True
        )
    ]
    assert set(pointed) <= {ANSWER, "[CLS]"}
    assert pointed.count(ANSWER) >= len(rows)


def test_an_answer_behind_the_first_window_is_found(base, tmp_path):
    finetune(base, Answering(), [question(index) for index in range(64)], tmp_path / "out", RECIPE)
    model = Answering.auto_class.from_pretrained(tmp_path / "out").eval()
    long = [question(119, padding=120)]
    assert answers(model, AutoTokenizer.from_pretrained(tmp_path / "out"), long, 80) == [ANSWER]


@pytest.mark.parametrize(
    ("tagged", "found"),
    [
        ("B-NP I-NP O B-VP", {(0, 2, "NP"), (3, 4, "VP")}),
        ("B-NP B-NP I-NP", {(0, 1, "NP"), (1, 3, "NP")}),
        ("O I-NP I-VP", {(1, 2, "NP"), (2, 3, "VP")}),
        ("O O", set()),
    ],
)
def test_tags_mark_spans(tagged, found):
    assert spans(tagged.split()) == found


def test_an_unknown_task_lists_those_there_are():
    with pytest.raises(ValueError, match=f"task 'x' is unknown; there are {', '.join(TASKS)}"):
        task_named("x")
