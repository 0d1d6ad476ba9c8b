"""The stock form is the model that transformers builds with fewer or smaller layers, or is refused with the reason."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from axformer.errors import FormError
from axformer.forms.form import Form, NotMade
from axformer.forms.kinds import COMPACT, KINDS, STOCK
from axformer.forms.make import Finished, make_forms, usual_forms
from axformer.forms.stock import stock
from axformer.model.compact import compact
from axformer.plan.plan import LayerPlan, Plan
from axformer.repair.refit import apply_refit, refit_plan
from axformer.scores.measured import measure
from tests.family_cases import Case, all_cases, checkpoint_of, data_of
from tests.tiny_families import DIMENSIONS

FULL = Plan.full(DIMENSIONS)
DROPPED = (1, 3)
BERT = Case("bert", "classification")
cases = pytest.mark.parametrize("case", [case for case in all_cases() if case.task == "classification"], ids=str)


def alike(**changes: Any) -> Plan:
    """A plan that changes every layer in the same way."""
    return Plan(layers=tuple(layer.model_copy(update=changes) for layer in FULL.layers))


def changed(index: int, **changes: Any) -> Plan:
    """A plan that changes one layer."""
    layers = list(FULL.layers)
    layers[index] = layers[index].model_copy(update=changes)
    return Plan(layers=tuple(layers))


def made(case: Case, plan: Plan) -> tuple[Any, Any]:
    """The compact and the stock model of a plan."""
    checkpoint = checkpoint_of(case)
    small = compact(checkpoint.model, checkpoint.architecture, plan)
    return small, stock(small, checkpoint.head.model_class, checkpoint.architecture, plan)


@cases
def test_layers_with_equally_many_neurons_are_in_the_config(case: Case) -> None:
    """ALBERT's layers share their neurons, so they must keep the same ones."""
    runs = [((0, 9), (20, 27)), ((1, 17),), ((32, 48),), ((0, 16),)]
    layers = [layer.model_copy(update={"neurons": run}) for layer, run in zip(FULL.layers, runs, strict=True)]
    plan = alike(neurons=runs[0]) if case.family == "albert" else Plan(layers=tuple(layers))
    for cut in (plan, plan.dropping(DROPPED)):
        small, ordinary = made(case, cut)
        architecture, task, samples = checkpoint_of(case).architecture, checkpoint_of(case).task, data_of(case).samples
        assert architecture.intermediate_size(ordinary.config) == 16
        assert sum(weight.numel() for weight in ordinary.parameters()) == sum(w.numel() for w in small.parameters())
        losses = [measure(model, task, samples).losses for model in (small, ordinary)]
        torch.testing.assert_close(losses[1], losses[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", ["llama", "qwen3"])
@pytest.mark.parametrize(
    ("heads", "counts"), [((0, 1), (2, 1)), ((1, 2), (2, 2)), ((3,), (1, 1))], ids=["one group", "both", "one"]
)
def test_equally_many_heads_are_in_the_config_where_the_head_size_is(
    family: str, heads: tuple[int, ...], counts: tuple[int, int]
) -> None:
    case = Case(family, "classification")
    small, ordinary = made(case, alike(heads=heads))
    assert (ordinary.config.num_attention_heads, ordinary.config.num_key_value_heads) == counts
    losses = [measure(model, checkpoint_of(case).task, data_of(case).samples).losses for model in (small, ordinary)]
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("family", "plan", "reason"),
    [
        ("bert", alike(hard_attention=3), "does not compute hard attention"),
        ("bert", changed(1, attention=False, heads=()), "a layer has lost its attention block or its FFN block"),
        ("bert", changed(1, neurons=()), "a layer has lost its attention block or its FFN block"),
        ("bert", changed(1, neurons=((0, 8),)), "its layers keep 8 to 48 neurons"),
        ("bert", alike(heads=(0, 1)), "its layers have lost heads"),
        ("llama", changed(1, heads=(0, 1)), "its layers have lost heads"),
        ("llama", alike(heads=(0, 1, 2)), "its layers have lost heads"),
        (
            "albert",
            Plan(layers=(*alike(neurons=((0, 8),)).layers[:3], changed(3, neurons=((8, 16),)).layers[3])),
            "share",
        ),
    ],
)
def test_what_no_config_says_is_refused_with_the_reason(family: str, plan: Plan, reason: str) -> None:
    with pytest.raises(FormError, match=f"there is no stock form of this model: .*{reason}.*; take the compact"):
        made(Case(family, "classification"), plan)


def finished(plan: Plan, case: Case = BERT) -> Finished:
    checkpoint = checkpoint_of(case)
    return Finished(checkpoint, plan, compact(checkpoint.model, checkpoint.architecture, plan), data_of(case).samples)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [BERT, Case("gpt2", "causal_lm"), Case("albert", "classification"), Case("xlnet", "classification")],
    ids=str,
)
def test_it_is_made_and_loads_in_a_process_without_this_package(case: Case, tmp_path: Path) -> None:
    plan = FULL.dropping(DROPPED)
    names = usual_forms(plan, DIMENSIONS)
    assert names == (STOCK, COMPACT)
    forms = make_forms(finished(plan, case), names, tmp_path)
    assert [form.name for form in forms if isinstance(form, Form) and form.fresh is not None] == list(names)
    first, second = (KINDS[name].bytes_in(tmp_path / KINDS[name].directory) for name in names)
    assert abs(first - second) < 10_000, "the weights are the same, and only the headers differ"


def test_a_trained_model_has_it_with_its_own_weights(tmp_path: Path) -> None:
    trained = replace(finished(FULL.dropping(DROPPED)), is_trained=True)
    with torch.no_grad():
        trained.model.classifier.weight += 1.0
    (form,) = make_forms(trained, [STOCK], tmp_path)
    assert isinstance(form, Form)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path / "stock")
    assert torch.equal(loaded.classifier.weight, trained.model.classifier.weight)


def test_a_fitted_model_has_it_with_its_fitted_weights() -> None:
    checkpoint, samples, plan = checkpoint_of(BERT), data_of(BERT).samples, FULL.dropping((1,))
    fits = refit_plan(checkpoint.model, checkpoint.architecture, samples, plan)
    assert [block.number for block in sorted(fits)] == [4, 5, 6, 7], "the blocks above the dropped layer"
    small = compact(checkpoint.model, checkpoint.architecture, plan)
    before = measure(small, checkpoint.task, samples).losses
    apply_refit(small, checkpoint.architecture, plan, fits)
    ordinary = stock(small, checkpoint.head.model_class, checkpoint.architecture, plan)
    losses = [measure(model, checkpoint.task, samples).losses for model in (small, ordinary)]
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-5, atol=1e-5)
    assert (losses[0] != before).any()


def test_a_plan_that_does_more_has_the_compact_form_alone() -> None:
    for plan in (FULL, changed(0, neurons=((0, 8),)).dropping((1,)), alike(neurons=((0, 8),))):
        assert usual_forms(plan, DIMENSIONS) == (COMPACT,)


def test_a_form_that_was_asked_for_and_cannot_be_made_says_why(tmp_path: Path) -> None:
    (form,) = make_forms(finished(changed(0, neurons=((0, 8),))), [STOCK], tmp_path)
    assert isinstance(form, NotMade)
    assert "its layers keep 8 to 48 neurons" in form.reason
    assert not (tmp_path / "stock").exists()


def test_a_layer_plan_that_is_whole_stays_as_it_was_in_files() -> None:
    assert "dropped" not in FULL.layers[0].model_dump()
    assert "dropped" not in FULL.model_dump_json()
    dropped = FULL.dropping((2,)).layers[2]
    assert LayerPlan.model_validate_json(dropped.model_dump_json()) == dropped
