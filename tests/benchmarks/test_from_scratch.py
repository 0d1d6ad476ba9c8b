"""Small models of every family: an ordinary checkpoint comes out, and padding changes nothing."""

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from benchmarks.families import FAMILIES, HEADS, LAYERS, POSITIONS, family_named
from benchmarks.from_scratch import train_from_scratch
from benchmarks.measure import measure
from benchmarks.rows import Row, TextRow
from benchmarks.tasks.registry import task_named
from benchmarks.training import Recipe

RECIPE = Recipe(epochs=2, batch_size=16, learning_rate=1e-3, threads=1, max_length=32)
TEXTS = ["rain falls on the green hills today", "the bank lends money", "a striker scored twice in the last cup match"]
ROWS = [Row(f"{TEXTS[index % 3]}, {index}", ("rain", "bank", "cup")[index % 3]) for index in range(96)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_gives_a_checkpoint_that_loads_and_ignores_padding(family, tmp_path):
    train_from_scratch(family, task_named("classification"), ROWS, tmp_path / "out", RECIPE)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    assert model.config.model_type == family
    assert (model.config.num_hidden_layers, model.config.num_attention_heads) == (LAYERS, HEADS)
    assert model.config.pad_token_id == tokenizer.pad_token_id
    assert tokenizer.model_max_length == POSITIONS
    with torch.inference_mode():
        alone = model(**tokenizer(TEXTS[1], return_tensors="pt")).logits
        among = model(**tokenizer(TEXTS, padding=True, return_tensors="pt")).logits[1:2]
    assert torch.allclose(alone, among, atol=1e-4)
    assert not torch.allclose(alone, model(**tokenizer(TEXTS[2], return_tensors="pt")).logits, atol=1e-3)


def test_a_small_model_learns_a_topic(tmp_path):
    recipe = Recipe(epochs=10, batch_size=8, learning_rate=1e-3, threads=1, max_length=32)
    train_from_scratch("modernbert", task_named("classification"), ROWS, tmp_path / "out", recipe)
    assert measure(tmp_path / "out", task_named("classification"), ROWS, 32)["accuracy"] == 1.0


def test_a_small_model_learns_a_language(tmp_path):
    rows = [TextRow(row.text) for row in ROWS]
    recipe = Recipe(epochs=4, batch_size=8, learning_rate=1e-3, threads=1, max_length=32)
    train_from_scratch("gpt2", task_named("causal-lm"), rows, tmp_path / "out", recipe)
    vocabulary = len(AutoTokenizer.from_pretrained(tmp_path / "out"))
    assert measure(tmp_path / "out", task_named("causal-lm"), rows, 32)["perplexity"] < vocabulary / 10


def test_an_unknown_family_lists_those_there_are():
    with pytest.raises(ValueError, match=f"family 'bart' is unknown; there are {', '.join(FAMILIES)}"):
        family_named("bart")
