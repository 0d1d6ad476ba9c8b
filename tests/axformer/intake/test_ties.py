"""A language model whose head and embeddings differ keeps both in everything that is made of it, whatever its config says."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from axformer.architectures.registry import ARCHITECTURES
from axformer.forms.stock import stock
from axformer.forms.zeroed import zeroed
from axformer.intake.checkpoint import Checkpoint, from_memory, load_checkpoint
from axformer.model.compact import compact
from axformer.plan.plan import Plan
from tests.tiny_families import DIMENSIONS, tiny_family_model, tiny_family_tokenizer

HEADS = [
    (family, head.auto_class)
    for family, architecture in ARCHITECTURES.items()
    for head in architecture.heads
    if head.auto_class in (AutoModelForCausalLM, AutoModelForMaskedLM)
]
IDS = torch.tensor([[5, 9, 12, 7, 30, 6]])


def logits_of(model: Any) -> torch.Tensor:
    with torch.inference_mode():
        logits: torch.Tensor = model(input_ids=IDS, attention_mask=torch.ones_like(IDS)).logits
    return logits


def with_two(directory: Path, family: str, auto_class: Any) -> Any:
    """Write a checkpoint whose config ties what its file has twice; returns it as transformers loads it."""
    model = tiny_family_model(family, auto_class, tie_word_embeddings=True)
    model.save_pretrained(directory)
    tiny_family_tokenizer(family).save_pretrained(directory)
    path = directory / "model.safetensors"
    weights = load_file(path)
    for name, source in model.all_tied_weights_keys.items():
        own = model.get_parameter(name).detach()
        weights |= {source: own.clone(), name: own + 0.5 * torch.randn_like(own)}
    save_file(weights, path, {"format": "pt"})
    return auto_class.from_pretrained(directory).eval()


def check(checkpoint: Checkpoint, plain: Any) -> None:
    """All forms of the whole model must compute what transformers computes."""
    full, architecture = Plan.full(DIMENSIONS), checkpoint.architecture
    small = compact(checkpoint.model, architecture, full)
    forms = (
        checkpoint.model,
        small,
        stock(small, checkpoint.head.model_class, architecture, full),
        zeroed(checkpoint.model, architecture, full),
    )
    for form in forms:
        torch.testing.assert_close(logits_of(form), logits_of(plain), atol=1e-4, rtol=1e-4)
        assert not form.config.tie_word_embeddings
        counts = (sum(weight.numel() for weight in one.parameters()) for one in (form, checkpoint.model))
        assert len(set(counts)) == 1


@pytest.mark.parametrize(("family", "auto_class"), HEADS, ids=[family for family, _ in HEADS])
def test_two_weights_that_the_config_ties_stay_two(tmp_path: Path, family: str, auto_class: Any) -> None:
    plain = with_two(tmp_path, family, auto_class)
    check(load_checkpoint(tmp_path), plain)
    check(from_memory(plain, tiny_family_tokenizer(family)), plain)


def test_weights_that_are_one_stay_one(tmp_path: Path) -> None:
    model = tiny_family_model("bert", AutoModelForMaskedLM)
    model.save_pretrained(tmp_path)
    tiny_family_tokenizer("bert").save_pretrained(tmp_path)
    loaded = load_checkpoint(tmp_path).model
    assert loaded.config.tie_word_embeddings
    assert loaded.cls.predictions.decoder.weight is loaded.bert.embeddings.word_embeddings.weight
