"""The laws of the two forms and of the evaluators, for every family and every task: only the adapters know which they are.

``make families`` runs these and writes ``docs/families.md`` from their outcomes.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from tokenizers.pre_tokenizers import ByteLevel
from transformers import AutoModel, RobertaConfig, RobertaForSequenceClassification, RobertaTokenizer, pipeline

import axformer
import axformer.auto
from axformer.architectures.registry import ARCHITECTURES, architecture_of
from axformer.config import PassConfig
from axformer.data.columns import DataSource
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.forms.stock import stock
from axformer.intake.checkpoint import Checkpoint, from_memory
from axformer.model.compact import compact
from axformer.model.parameters import ParameterCount
from axformer.plan.elements import parse
from axformer.plan.plan import Plan
from axformer.scores.measured import measure
from tests.family_cases import Case, all_cases, checkpoint_of, data_of, some_plan, stock_model
from tests.plain import PlainEvaluator
from tests.plans import plans
from tests.runs import open_run
from tests.shallow import kept_without, shallow
from tests.tiny_families import DIMENSIONS, tiny_family_model, tiny_family_tokenizer
from tests.tiny_models import tiny_rows, write_rows

BUDGET = 1_000_000_000
"""Bytes; more than any of these needs."""
FULL = Plan.full(DIMENSIONS)
PLANS = [some_plan(seed) for seed in range(3)]
DROPS = ((3,), (1, 3), (1, 2))
DROPPED = some_plan(3).dropping((1, 3))
RELATIVE = {"deberta-v2", "llama", "modernbert", "qwen3", "xlnet"}
"""Families that count positions relative to each other: nothing breaks when an input is longer than they are meant for."""
families = pytest.mark.parametrize("family", sorted(ARCHITECTURES))
cases = pytest.mark.parametrize("case", all_cases(), ids=str, scope="module")
"""With this scope all laws of one case come one after another, and share its models."""


def plain(case: Case) -> PlainEvaluator:
    checkpoint = checkpoint_of(case)
    return PlainEvaluator(checkpoint.model, checkpoint.architecture, checkpoint.task, data_of(case).samples)


@lru_cache(maxsize=16)
def plain_losses(case: Case, plan: Plan) -> torch.Tensor:
    """By the reference, once for all laws of a case."""
    return plain(case).losses(plan)


def losses(model: Any, case: Case) -> torch.Tensor:
    samples = data_of(case).samples
    return measure(model, checkpoint_of(case).task, samples).losses


def small_model(checkpoint: Checkpoint, plan: Plan) -> Any:
    return compact(checkpoint.model, checkpoint.architecture, plan)


@lru_cache(maxsize=len(PLANS) + 2)
def shared_model(case: Case, plan: Plan) -> Any:
    """A small model that tests only read."""
    return small_model(checkpoint_of(case), plan)


@cases
def test_masked_equals_removed(case: Case) -> None:
    for plan in (*PLANS, DROPPED):
        removed = losses(shared_model(case, plan), case)
        torch.testing.assert_close(removed, plain_losses(case, plan), rtol=1e-5, atol=1e-5)


@cases
def test_fast_equals_plain(case: Case) -> None:
    checkpoint = checkpoint_of(case)
    fast = PrefixEvaluator(
        checkpoint.model, checkpoint.architecture, checkpoint.task, data_of(case).samples, FULL, budget=BUDGET
    )
    plan = FULL
    for id in (
        "layer.1.hard_attention",
        "layer.3.ffn",
        "layer.2.attention.head.1",
        "layer.1.ffn.neurons.3:20",
        "layer.0",
        "layer.3.drop",
        "layer.1.drop",
    ):
        trial = plan.apply(parse(id), top_k=3)
        torch.testing.assert_close(fast.losses(trial), plain(case).losses(trial), rtol=1e-5, atol=2e-6)
        if id != "layer.2.attention.head.1":  # one that is not accepted leaves no trace
            fast.accept(trial)
            plan = trial
    torch.testing.assert_close(fast.losses(PLANS[0]), plain_losses(case, PLANS[0]), rtol=1e-5, atol=2e-6)


@cases
def test_saved_equals_loaded(case: Case, tmp_path: Path) -> None:
    small = small_model(checkpoint_of(case), PLANS[1].dropping((2,)))
    small.save_pretrained(tmp_path)
    by_auto_class = checkpoint_of(case).head.auto_class.from_pretrained(tmp_path).eval()
    assert by_auto_class.config.model_type == f"axformer-{case.family}"
    for loaded in (
        by_auto_class,
        axformer.load(tmp_path),
    ):  # weights lie elsewhere in memory, which may change a last bit
        torch.testing.assert_close(losses(loaded, case), losses(small, case), rtol=1e-6, atol=1e-6)


@cases
def test_dropped_equals_fewer_layers(case: Case) -> None:
    """To the last bit: masked in the arithmetic of a pass, and in the stock form."""
    checkpoint, samples = checkpoint_of(case), data_of(case).samples
    for dropped in DROPS:
        plan, expected = FULL.dropping(dropped), shallow(stock_model(case), kept_without(dropped))
        adopted = from_memory(expected, tiny_family_tokenizer(case.family))
        assert torch.equal(plain(case).losses(plan), losses(adopted.model, case))
        small = small_model(checkpoint, plan)
        ordinary = stock(small, checkpoint.head.model_class, checkpoint.architecture, plan)
        assert type(ordinary) is type(expected)
        ours, theirs = ordinary.config.to_dict(), expected.config.to_dict()
        known = set(theirs) - {"architectures", "dtype"}  # these are set when a model is saved
        assert {name: ours[name] for name in known} == {name: theirs[name] for name in known}
        with torch.inference_mode():
            found, wanted = (model(**samples.batches[0].inputs) for model in (ordinary, expected))
        logits = [name for name in wanted if name.endswith("logits")]
        assert logits
        assert all(torch.equal(found[name], wanted[name]) for name in logits)


@cases
def test_parameters_are_counted(case: Case) -> None:
    checkpoint = checkpoint_of(case)
    count = ParameterCount(checkpoint.model, checkpoint.architecture)
    for plan in (FULL, *PLANS, DROPPED):
        small = shared_model(case, plan)
        assert count.left(plan) == sum(parameter.numel() for parameter in small.parameters())


@cases
def test_keeping_everything_changes_nothing(case: Case) -> None:
    expected = losses(stock_model(case), case)
    torch.testing.assert_close(plain_losses(case, FULL), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(losses(shared_model(case, FULL), case), expected, rtol=1e-5, atol=1e-5)


@families
def test_hard_attention_changes_only_what_is_longer_than_k(family: str) -> None:
    case, top_k = Case(family, "classification"), 5
    evaluator, lengths = plain(case), data_of(case).samples.lengths
    soft = evaluator.losses(FULL)
    hard = evaluator.losses(FULL.apply(parse("layer.1.hard_attention"), top_k=top_k))
    assert torch.equal(hard[lengths <= top_k], soft[lengths <= top_k])
    assert (lengths <= top_k).any()
    assert (hard[lengths > top_k] != soft[lengths > top_k]).any()


@families
def test_the_base_model_loads_without_its_head(family: str, tmp_path: Path) -> None:
    case = Case(family, "classification")
    small = small_model(checkpoint_of(case), PLANS[1])
    small.save_pretrained(tmp_path)
    base = AutoModel.from_pretrained(tmp_path).eval()
    inputs = {name: data_of(case).samples.batches[0].inputs[name] for name in ("input_ids", "attention_mask")}
    with torch.inference_mode():
        expected, found = (model(**inputs).last_hidden_state for model in (small.base_model, base))
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


@families
@given(plan=plans(DIMENSIONS))
@settings(deadline=None, max_examples=15)
def test_any_plan_can_be_carried_out(family: str, plan: Plan) -> None:
    case = Case(family, "classification")
    checkpoint = checkpoint_of(case)
    assume(checkpoint.architecture.needs(checkpoint.model.config, plan) is None)
    fast = PrefixEvaluator(
        checkpoint.model, checkpoint.architecture, checkpoint.task, data_of(case).samples, FULL, budget=BUDGET
    )
    small = small_model(checkpoint, plan)
    torch.testing.assert_close(losses(small, case), fast.losses(plan), rtol=1e-5, atol=1e-5)
    left = ParameterCount(checkpoint.model, checkpoint.architecture).left(plan)
    assert left == sum(parameter.numel() for parameter in small.parameters())


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
    run = open_run(tmp_path / "checkpoint", DataSource(str(data)), config=knobs)
    list(run.trials())
    report = run.publish(tmp_path / "pruned")
    assert report["pruned"]["parameters"] < report["base"]["parameters"]
    classify = pipeline("text-classification", model=str(tmp_path / "pruned" / "model"))
    assert classify("word1 word2")[0]["label"] in {"LABEL_0", "LABEL_1"}
