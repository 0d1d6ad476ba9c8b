"""The zeroed form computes what the compact one does, in stock transformers, or is refused.

Without fitted weights every family is tried with every head. With fitted ones, which lie in the layers below any head, every
family is tried with one head, and every head with BERT or, where BERT has none, with GPT-2.
"""

from pathlib import Path

import pytest
import torch

import axformer.auto  # noqa: F401 - some heads build their base model by it
from axformer.errors import ArtifactError, FormError
from axformer.forms.fresh import FreshPython, in_stock_transformers
from axformer.forms.kinds import KINDS, ZEROED
from axformer.forms.selfcheck import self_check
from axformer.forms.zeroed import zeroed
from axformer.model.compact import compact
from axformer.plan.plan import LayerPlan, Plan
from axformer.repair.refit import Refit, apply_refit, masked_and_fitted, matrix_of, refit_plan
from axformer.scores.measured import measure
from tests.family_cases import Case, all_cases, checkpoint_of, data_of, some_plan
from tests.tiny_families import DIMENSIONS

HALF = tuple(range(DIMENSIONS.heads // 2))
FITTED = Plan(
    layers=(
        LayerPlan(attention=True, heads=HALF, ffn=True, neurons=((1, 4), (6, 9)), hard_attention=None),
        LayerPlan(attention=True, heads=(), ffn=True, neurons=(), hard_attention=None),
        LayerPlan(attention=False, heads=(), ffn=True, neurons=((0, 5),), hard_attention=None),
        *(Plan.full(DIMENSIONS).layers[:1] * (DIMENSIONS.layers - 3)),
    )
)
"""Blocks that are cut, emptied so that the best constant is left, removed, and whole above those."""


def soft(plan: Plan) -> Plan:
    """The plan without hard attention."""
    return Plan(layers=tuple(layer.model_copy(update={"hard_attention": None}) for layer in plan.layers))


PLAN = soft(some_plan(1))
CASES = [case for case in all_cases() if case.family != "albert"]
COVERING = [case for case in CASES if case.task == "classification" or case.family == "bert"]
COVERING.append(Case("gpt2", "causal_lm"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_zeroed_equals_compact(case: Case) -> None:
    checkpoint, samples = checkpoint_of(case), data_of(case).samples
    for plan in (PLAN, PLAN.dropping((1,))):
        small = compact(checkpoint.model, checkpoint.architecture, plan)
        whole = zeroed(checkpoint.model, checkpoint.architecture, plan)
        assert type(whole) is type(checkpoint.model)
        assert type(whole).__module__.startswith("transformers.")
        assert whole.config.num_hidden_layers == len(plan.remaining)
        expected, found = (measure(model, checkpoint.task, samples).losses for model in (small, whole))
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def fits_of(case: Case, plan: Plan = FITTED) -> Refit:
    checkpoint = checkpoint_of(case)
    return refit_plan(checkpoint.model, checkpoint.architecture, data_of(case).samples, plan)


def fitted_compact(case: Case, fits: Refit, plan: Plan = FITTED) -> torch.nn.Module:
    checkpoint = checkpoint_of(case)
    small = compact(checkpoint.model, checkpoint.architecture, plan)
    apply_refit(small, checkpoint.architecture, plan, fits)
    return small


@pytest.mark.parametrize(
    ("case", "dropped"),
    [(case, dropped) for case in COVERING for dropped in ((), (1,)) if not dropped or case.task == "classification"],
    ids=str,
)
def test_with_fitted_weights_masked_zeroed_and_compact_are_one(case: Case, dropped: tuple[int, ...]) -> None:
    """A head does not know which layers were dropped, so that is tried with one head of each family."""
    plan = FITTED.dropping(dropped)
    checkpoint, samples = checkpoint_of(case), data_of(case).samples
    model, architecture, task = checkpoint.model, checkpoint.architecture, checkpoint.task
    fits, before = fits_of(case, plan), {name: value.clone() for name, value in model.state_dict().items()}
    whole = zeroed(model, architecture, plan, fits)
    assert type(whole) is type(model)
    expected, found = (measure(one, task, samples).losses for one in (fitted_compact(case, fits, plan), whole))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    with masked_and_fitted(model, architecture, plan, fits):
        masked = measure(model, task, samples).losses
    torch.testing.assert_close(masked, expected, rtol=1e-5, atol=1e-5)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("case", [case for case in CASES if case.task == "classification"], ids=str)
def test_fitted_weights_stand_at_the_columns_that_stay_and_zeros_elsewhere(case: Case) -> None:
    checkpoint = checkpoint_of(case)
    architecture, fits = checkpoint.architecture, fits_of(case)
    whole, small = zeroed(checkpoint.model, architecture, FITTED, fits), fitted_compact(case, fits)
    layers = [architecture.layers(model) for model in (whole, small)]
    for block, fit in fits.items():
        theirs = architecture.layout(block).weights(layers[0][block.layer])
        matrix = matrix_of(theirs)
        kept = matrix.abs().sum(dim=0) != 0
        if fit.weight is None:
            assert not kept.any()
        else:
            assert torch.equal(matrix[:, kept], fit.weight)
            assert torch.equal(matrix_of(architecture.layout(block).weights(layers[1][block.layer])), fit.weight)
        assert (fit.bias is None) == (theirs.bias is None), "a bias is fitted where the family has one"
        if fit.bias is not None and theirs.bias is not None:
            assert torch.equal(theirs.bias, fit.bias)


@pytest.mark.slow
@pytest.mark.parametrize("case", [Case("bert", "classification"), Case("gpt2", "causal_lm")], ids=str)
@pytest.mark.parametrize("is_fitted", [False, True])
def test_it_loads_where_this_package_is_not(case: Case, is_fitted: bool, tmp_path: Path) -> None:
    checkpoint, encoded = checkpoint_of(case), data_of(case).samples.encoded
    fits = fits_of(case) if is_fitted else None
    whole = zeroed(checkpoint.model, checkpoint.architecture, FITTED if is_fitted else PLAN, fits)
    for part in (whole, checkpoint.tokenizer):
        part.save_pretrained(tmp_path)
    small = compact(checkpoint.model, checkpoint.architecture, PLAN) if fits is None else fitted_compact(case, fits)
    python = FreshPython(in_stock_transformers(checkpoint.head.auto_class.__name__))
    self_check(small, checkpoint.tokenizer, encoded, KINDS[ZEROED], tmp_path, python, pooled=checkpoint.task.pooled)
    other = compact(checkpoint.model, checkpoint.architecture, soft(some_plan(2)))
    with pytest.raises(ArtifactError, match="differ by"):
        self_check(other, checkpoint.tokenizer, encoded, KINDS[ZEROED], tmp_path, python, pooled=checkpoint.task.pooled)


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
            pooled=True,
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
    expected, found = (measure(model, checkpoint.task, samples).losses for model in (checkpoint.model, whole))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
