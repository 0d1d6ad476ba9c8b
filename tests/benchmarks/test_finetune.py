"""Fine-tuning on a tiny model: repeatable, and an ordinary checkpoint comes out."""

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification, BertModel

from benchmarks.demo_checkpoint import demo_checkpoint
from benchmarks.finetune import finetune
from benchmarks.measure import measure
from benchmarks.rows import Row, read_rows, write_rows
from benchmarks.tasks.registry import task_named
from benchmarks.training import Recipe
from tests.tiny_models import MAX_TOKENS, WORDS, tiny_config, tiny_tokenizer

RECIPE = Recipe(epochs=15, batch_size=8, learning_rate=0.003, threads=1, max_length=MAX_TOKENS)
CLASSES = task_named("classification")
ROWS = [
    Row(f"{WORDS[index % 2]} {WORDS[2 + index % 50]}", ("zebra", "ape")[index % 2]) for index in range(64)
]  # the first word tells the label


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A tiny model without a head, as it comes from pre-training."""
    BertModel(tiny_config(layers=2)).save_pretrained(tmp_path / "base")
    tiny_tokenizer().save_pretrained(tmp_path / "base")
    return tmp_path / "base"


def test_the_checkpoint_has_learned_and_names_its_labels(base, tmp_path):
    finetune(base, CLASSES, ROWS, tmp_path / "out", RECIPE)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["label2id"] == {"ape": 0, "zebra": 1}
    assert measure(tmp_path / "out", CLASSES, ROWS, MAX_TOKENS)["accuracy"] == 1.0


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(base, tmp_path):
    recipes = {"first": Recipe(epochs=1, threads=1), "again": Recipe(epochs=1, threads=1)}
    recipes["other"] = Recipe(epochs=1, threads=1, seed=1)
    for name, recipe in recipes.items():
        finetune(base, CLASSES, ROWS, tmp_path / name, recipe)
    heads = {name: load_file(tmp_path / name / "model.safetensors")["classifier.weight"] for name in recipes}
    assert heads["first"].equal(heads["again"])
    assert not heads["first"].equal(heads["other"])


def test_float_labels_make_a_regressor_of_sentence_pairs(base, tmp_path):
    task = task_named("regression")
    rows = [Row(row.text, float(row.label == "ape"), text_pair="word7") for row in ROWS]
    finetune(base, task, rows, tmp_path / "out", RECIPE)
    assert AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").config.problem_type == "regression"
    assert measure(tmp_path / "out", task, rows, MAX_TOKENS)["pearson"] > 0.9


def test_rows_are_read_as_they_were_written(tmp_path):
    rows = [Row("a “b”\u2028", "x"), Row("c", 1.5, text_pair="d")]
    write_rows(tmp_path / "rows.jsonl", rows)
    assert read_rows(tmp_path / "rows.jsonl", Row) == rows


def test_the_demo_s_checkpoint_is_kept_until_its_data_change(base, tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.demo_checkpoint.minilm", lambda: base)
    recipe = Recipe(epochs=1, threads=1)
    write_rows(tmp_path / "train.jsonl", ROWS)
    made = demo_checkpoint(tmp_path / "train.jsonl", tmp_path, recipe)
    first = (made / "model.safetensors").stat().st_mtime_ns
    demo_checkpoint(tmp_path / "train.jsonl", tmp_path, recipe)
    assert (made / "model.safetensors").stat().st_mtime_ns == first
    write_rows(tmp_path / "train.jsonl", ROWS[:32])
    demo_checkpoint(tmp_path / "train.jsonl", tmp_path, recipe)
    assert (made / "model.safetensors").stat().st_mtime_ns != first
