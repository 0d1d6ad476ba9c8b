"""The laws of the two forms and of the evaluators, for every family: nothing but the adapter knows which one it is."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    AutoModelForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
    RobertaTokenizer,
    pipeline,
)

import axformer.auto  # noqa: F401 - registers the compact models
from axformer.architectures.registry import ARCHITECTURES, architecture_of
from axformer.checkpoint import from_memory
from axformer.compact import compact
from axformer.config import PassConfig
from axformer.data import rows_of
from axformer.dataset import DataSource, prepare
from axformer.evaluation.plain import PlainEvaluator, predict
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.parameters import ParameterCount
from axformer.plan import Plan
from axformer.run import PruningRun
from tests.plans import plans
from tests.tiny_families import DIMENSIONS, tiny_family_model, tiny_family_tokenizer
from tests.tiny_models import tiny_rows, write_rows

RELATIVE = {"deberta-v2", "llama", "modernbert", "qwen3", "xlnet"}
"""Families that count positions relative to each other: nothing breaks when an input is longer than they are meant for."""
families = pytest.mark.parametrize("family", sorted(ARCHITECTURES))


@families
@given(data=st.data())
@settings(deadline=None, max_examples=15)
def test_masked_is_removed_and_fast_is_plain(family: str, data: st.DataObject) -> None:
    plan = data.draw(plans(DIMENSIONS))
    checkpoint = from_memory(tiny_family_model(family), tiny_family_tokenizer(family))
    samples = prepare(rows_of(tiny_rows(12, pairs=False)), checkpoint, PassConfig(batch_tokens=40)).samples
    parts = checkpoint.model, checkpoint.architecture, checkpoint.task, samples
    plain = PlainEvaluator(*parts).losses(plan)
    fast = PrefixEvaluator(*parts, Plan.full(DIMENSIONS)).losses(plan)
    small = compact(checkpoint.model, checkpoint.architecture, plan)
    removed = predict(small, checkpoint.task, samples).losses
    torch.testing.assert_close(fast, plain, rtol=1e-5, atol=2e-6)
    torch.testing.assert_close(removed, plain, rtol=1e-5, atol=1e-5)
    left = ParameterCount(checkpoint.model, checkpoint.architecture).left(plan)
    assert left == sum(part.numel() for part in small.parameters())


@families
def test_a_whole_plan_changes_nothing(family: str) -> None:
    checkpoint = from_memory(tiny_family_model(family), tiny_family_tokenizer(family))
    samples = prepare(rows_of(tiny_rows(12)), checkpoint, PassConfig()).samples
    stock = predict(tiny_family_model(family), checkpoint.task, samples).losses
    evaluator = PlainEvaluator(checkpoint.model, checkpoint.architecture, checkpoint.task, samples)
    torch.testing.assert_close(evaluator.losses(Plan.full(DIMENSIONS)), stock, rtol=1e-5, atol=1e-5)


@families
def test_saved_is_loaded(family: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    checkpoint = from_memory(tiny_family_model(family), tiny_family_tokenizer(family))
    whole = Plan.full(DIMENSIONS).layers
    changes: list[dict[str, Any]] = [
        {"heads": (1, 3), "neurons": ((4, 9),), "hard_attention": 3},
        {"heads": (0,), "ffn": False, "neurons": ()},
        {"heads": (), "neurons": ((0, 2), (8, 9))},
        {"attention": False, "heads": (), "neurons": ()},
    ]
    plan = Plan(layers=tuple(layer.model_copy(update=change) for layer, change in zip(whole, changes, strict=True)))
    small = compact(checkpoint.model, checkpoint.architecture, plan)
    directory = tmp_path_factory.mktemp(family)
    small.save_pretrained(directory)
    loaded = AutoModelForSequenceClassification.from_pretrained(directory).eval()
    samples = prepare(rows_of(tiny_rows(12)), checkpoint, PassConfig()).samples
    assert loaded.config.model_type == f"axformer-{family}"
    assert torch.equal(
        predict(loaded, checkpoint.task, samples).losses, predict(small, checkpoint.task, samples).losses
    )


@pytest.mark.parametrize("family", sorted(set(ARCHITECTURES) - RELATIVE))
def test_the_longest_input_is_what_the_model_takes(family: str) -> None:
    model, architecture = tiny_family_model(family), architecture_of(family)
    longest = architecture.max_tokens(model.config)
    ids = torch.full((1, longest), 7)
    assert model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits.isfinite().all()
    too_long = torch.full((1, longest + 1), 7)
    with pytest.raises((IndexError, RuntimeError)):
        model(input_ids=too_long, attention_mask=torch.ones_like(too_long))


def test_a_checkpoint_with_a_tokenizer_of_its_own_goes_all_the_way(tmp_path: Path) -> None:
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(ByteLevel.alphabet())]
    tokenizer = RobertaTokenizer(vocab={token: index for index, token in enumerate(vocabulary)}, merges=[])
    config = RobertaConfig(
        **{"vocab_size": len(vocabulary), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
        **{"intermediate_size": 48, "max_position_embeddings": 260, "initializer_range": 0.3, "pad_token_id": 1},
    )
    torch.manual_seed(0)
    RobertaForSequenceClassification(config).save_pretrained(tmp_path / "checkpoint")
    tokenizer.save_pretrained(tmp_path / "checkpoint")
    data = write_rows(tmp_path / "data.jsonl", tiny_rows(30, pairs=True))
    knobs = PassConfig(majority_fraction=0.1, attention_top_k=5)
    run = PruningRun.open(tmp_path / "checkpoint", DataSource(str(data)), config=knobs)
    list(run.trials())
    report = run.publish(tmp_path / "pruned")
    assert report["pruned"]["parameters"] < report["base"]["parameters"]
    classify = pipeline("text-classification", model=str(tmp_path / "pruned" / "model"))
    assert classify("word1 word2")[0]["label"] in {"LABEL_0", "LABEL_1"}
