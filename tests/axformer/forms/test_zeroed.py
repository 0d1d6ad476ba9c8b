"""The zeroed form computes what the compact one does, in stock transformers, or is refused."""

from pathlib import Path

import pytest
import torch

import axformer.auto  # noqa: F401 - some heads build their base model by it
from axformer.errors import ArtifactError, FormError
from axformer.evaluation.plain import predict
from axformer.forms.fresh import FreshPython, in_stock_transformers
from axformer.forms.kinds import KINDS, ZEROED
from axformer.forms.selfcheck import self_check
from axformer.forms.zeroed import zeroed
from axformer.model.compact import compact
from axformer.plan.plan import Plan
from tests.family_cases import Case, all_cases, checkpoint_of, data_of, some_plan
from tests.tiny_families import DIMENSIONS


def soft(plan: Plan) -> Plan:
    """The plan without hard attention."""
    return Plan(layers=tuple(layer.model_copy(update={"hard_attention": None}) for layer in plan.layers))


PLAN = soft(some_plan(1))
CASES = [case for case in all_cases() if case.family != "albert"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_zeroed_equals_compact(case: Case) -> None:
    checkpoint, samples = checkpoint_of(case), data_of(case).samples
    small = compact(checkpoint.model, checkpoint.architecture, PLAN)
    whole = zeroed(checkpoint.model, checkpoint.architecture, PLAN)
    assert type(whole) is type(checkpoint.model)
    assert type(whole).__module__.startswith("transformers.")
    expected, found = (predict(model, checkpoint.task, samples).losses for model in (small, whole))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", [Case("bert", "classification"), Case("gpt2", "causal_lm")], ids=str)
def test_it_loads_where_this_package_is_not(case: Case, tmp_path: Path) -> None:
    checkpoint, encoded = checkpoint_of(case), data_of(case).samples.encoded
    whole = zeroed(checkpoint.model, checkpoint.architecture, PLAN)
    for part in (whole, checkpoint.tokenizer):
        part.save_pretrained(tmp_path)
    small = compact(checkpoint.model, checkpoint.architecture, PLAN)
    python = FreshPython(in_stock_transformers(checkpoint.head.auto_class.__name__))
    self_check(small, checkpoint.tokenizer, encoded, KINDS[ZEROED], tmp_path, python)
    other = compact(checkpoint.model, checkpoint.architecture, soft(some_plan(2)))
    with pytest.raises(ArtifactError, match="differ by"):
        self_check(other, checkpoint.tokenizer, encoded, KINDS[ZEROED], tmp_path, python)


def test_a_compact_model_does_not_load_there(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(Case("bert", "classification"))
    small = compact(checkpoint.model, checkpoint.architecture, PLAN)
    for part in (small, checkpoint.tokenizer):
        part.save_pretrained(tmp_path)
    with pytest.raises(ArtifactError, match="does not load in a fresh process"):
        self_check(
            small,
            checkpoint.tokenizer,
            data_of(Case("bert", "classification")).samples.encoded,
            KINDS[ZEROED],
            tmp_path,
            FreshPython(in_stock_transformers("AutoModelForSequenceClassification")),
        )


def test_hard_attention_is_refused_and_named() -> None:
    checkpoint = checkpoint_of(Case("bert", "classification"))
    layers = list(PLAN.layers)
    layers[1] = Plan.full(DIMENSIONS).layers[1].model_copy(update={"hard_attention": 5})
    with pytest.raises(FormError, match=r"hard attention \(layers 1\)"):
        zeroed(checkpoint.model, checkpoint.architecture, Plan(layers=tuple(layers)))


def test_layers_that_share_weights_are_refused_unless_nothing_is_removed() -> None:
    case = Case("albert", "classification")
    checkpoint, samples = checkpoint_of(case), data_of(case).samples
    with pytest.raises(FormError, match="share their weights"):
        zeroed(checkpoint.model, checkpoint.architecture, PLAN)
    whole = zeroed(checkpoint.model, checkpoint.architecture, Plan.full(DIMENSIONS))
    expected, found = (predict(model, checkpoint.task, samples).losses for model in (checkpoint.model, whole))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
