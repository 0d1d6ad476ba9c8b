"""Training on tiny models: repeatable, every task learns a rule that its rows follow, and an ordinary checkpoint comes out."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, BertModel

from benchmarks.demo_data import demo_checkpoint
from benchmarks.finetune import finetune
from benchmarks.rows import LabelsRow, QuestionRow, Row, TagsRow, read_rows, write_rows
from benchmarks.tasks.answering import Answering
from benchmarks.tasks.registry import TASKS, task_named
from benchmarks.training import Recipe
from tests.tiny_models import MAX_TOKENS, WORDS, tiny_config, tiny_tokenizer

RECIPE = Recipe(epochs=15, batch_size=8, learning_rate=0.003, threads=1, max_length=MAX_TOKENS)
CLASSES = task_named("classification")
ANSWER = "word1"
ROWS = [
    Row(f"{WORDS[index % 2]} {WORDS[2 + index % 50]}", ("zebra", "ape")[index % 2]) for index in range(64)
]  # the first word tells the label


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A tiny model without a head, as it comes from pre-training."""
    torch.manual_seed(0)
    BertModel(tiny_config(layers=2)).save_pretrained(tmp_path / "base")
    tiny_tokenizer().save_pretrained(tmp_path / "base")
    return tmp_path / "base"


def question(index: int, padding: int = 3) -> QuestionRow:
    """A context in which one word, always the same, is the answer."""
    before = " ".join(WORDS[2 + (index + step) % 50] for step in range(index % padding))
    after = " ".join(WORDS[2 + (index * step) % 50] for step in range(1, 4))
    context = f"{before} {ANSWER} {after}".strip()
    return QuestionRow("word0", context, {"text": [ANSWER], "answer_start": [context.index(f"{ANSWER} ")]})


def tags(index: int) -> TagsRow:
    words = [WORDS[(index + step) % 4] for step in range(1 + index % 5)]
    return TagsRow(words, [{"word0": "B-X", "word1": "I-X"}.get(word, "O") for word in words])


LEARNED: dict[str, tuple[list[Any], float]] = {
    "classification": (ROWS, 0.1),
    "regression": ([Row(row.text, float(row.label == "ape"), text_pair="word7") for row in ROWS], 0.05),
    "multi-label": (
        [LabelsRow(row.text, sorted({word for word in row.text.split() if word in WORDS[:2]})) for row in ROWS],
        0.2,
    ),
    "tagging": ([tags(index) for index in range(64)], 0.3),
    "question-answering": ([question(index) for index in range(64)], 0.5),
}
"""Rows of each task, and the loss that a model is to fall below on them; without learning it is that of guessing."""


@torch.inference_mode()
def loss_of(checkpoint: Path, name: str, rows: list[Any], max_length: int = MAX_TOKENS) -> float:
    """The loss of a checkpoint on rows."""
    task = task_named(name)
    model, tokenizer = task.auto_class.from_pretrained(checkpoint).eval(), AutoTokenizer.from_pretrained(checkpoint)
    return float(model(**task.encode(tokenizer, rows, model.config, max_length)).loss)


@pytest.mark.parametrize("name", LEARNED)
def test_a_task_learns_what_its_rows_follow(name: str, base: Path, tmp_path: Path) -> None:
    rows, most = LEARNED[name]
    write_rows(tmp_path / "rows.jsonl", rows)
    assert read_rows(tmp_path / "rows.jsonl", task_named(name).form) == rows
    finetune(base, task_named(name), rows, tmp_path / "out", RECIPE)
    assert loss_of(tmp_path / "out", name, rows) < most


def test_the_head_names_its_labels(base: Path, tmp_path: Path) -> None:
    finetune(base, task_named("tagging"), [tags(index) for index in range(8)], tmp_path / "out", Recipe(epochs=1))
    assert json.loads((tmp_path / "out" / "config.json").read_text())["label2id"] == {"B-X": 0, "I-X": 1, "O": 2}


@pytest.mark.parametrize("max_length", [MAX_TOKENS, 80])
def test_the_target_of_a_window_is_the_answer_or_its_first_token(max_length: int) -> None:
    tokenizer, task = tiny_tokenizer(), Answering()
    rows = [question(index, padding=120) for index in (0, 5, 60, 110)]
    inputs = task.encode(tokenizer, rows, None, max_length)
    targets = zip(inputs["input_ids"], inputs["start_positions"], inputs["end_positions"], strict=True)
    pointed = [tokenizer.decode(window[start : stop + 1]) for window, start, stop in targets]
    assert set(pointed) <= {ANSWER, "[CLS]"}
    assert pointed.count(ANSWER) >= len(rows)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(base: Path, tmp_path: Path) -> None:
    recipes = {"first": Recipe(epochs=1, threads=1), "again": Recipe(epochs=1, threads=1)}
    recipes["other"] = Recipe(epochs=1, threads=1, seed=1)
    for name, recipe in recipes.items():
        finetune(base, CLASSES, ROWS, tmp_path / name, recipe)
    heads = {name: load_file(tmp_path / name / "model.safetensors")["classifier.weight"] for name in recipes}
    assert heads["first"].equal(heads["again"])
    assert not heads["first"].equal(heads["other"])


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = [Row("a “b”\u2028", "x"), Row("c", 1.5, text_pair="d")]
    write_rows(tmp_path / "rows.jsonl", rows)
    assert read_rows(tmp_path / "rows.jsonl", Row) == rows


def test_the_demo_s_checkpoint_is_kept_until_its_data_change(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.demo_data.minilm", lambda: base)
    recipe = Recipe(epochs=1, threads=1)
    write_rows(tmp_path / "train.jsonl", ROWS)
    made = demo_checkpoint(tmp_path / "train.jsonl", tmp_path, recipe)
    first = (made / "model.safetensors").stat().st_mtime_ns
    demo_checkpoint(tmp_path / "train.jsonl", tmp_path, recipe)
    assert (made / "model.safetensors").stat().st_mtime_ns == first
    write_rows(tmp_path / "train.jsonl", ROWS[:32])
    demo_checkpoint(tmp_path / "train.jsonl", tmp_path, recipe)
    assert (made / "model.safetensors").stat().st_mtime_ns != first


def test_what_is_unknown_lists_what_there_is() -> None:
    with pytest.raises(ValueError, match=f"task 'x' is unknown; there are {', '.join(TASKS)}"):
        task_named("x")
