"""A model without some layers is the model that transformers builds with fewer layers and the weights of the others."""

from typing import Any

import pytest
import torch

from axformer.errors import PlanError
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.intake.checkpoint import from_memory
from axformer.model.compact import compact
from axformer.model.masking import masked
from axformer.model.operations import Operations
from axformer.model.parameters import ParameterCount
from axformer.plan.elements import parse
from axformer.plan.plan import Plan
from axformer.scores.measured import measure
from tests.family_cases import Case, all_cases, checkpoint_of, data_of, stock_model
from tests.plain import PlainEvaluator
from tests.shallow import kept_without, shallow
from tests.tiny_families import DIMENSIONS, tiny_family_model, tiny_family_tokenizer

FULL = Plan.full(DIMENSIONS)
DROPS = ((3,), (1, 3), (1, 2), (2, 3))
cases = pytest.mark.parametrize("case", [case for case in all_cases() if case.task == "classification"], ids=str)


@cases
def test_compact_has_the_weights_and_the_config_of_fewer_layers(case: Case) -> None:
    checkpoint, samples = checkpoint_of(case), data_of(case).samples
    count = ParameterCount(checkpoint.model, checkpoint.architecture)
    for dropped in DROPS:
        plan, expected = FULL.dropping(dropped), shallow(stock_model(case), kept_without(dropped))
        small = compact(checkpoint.model, checkpoint.architecture, plan)
        theirs, ours = expected.state_dict(), small.state_dict()
        assert theirs.keys() == ours.keys()
        assert all(torch.equal(values, ours[name]) for name, values in theirs.items())
        assert count.left(plan) == sum(parameter.numel() for parameter in expected.parameters())
        for key in ("num_hidden_layers", "layer_types", "num_hidden_groups"):
            assert getattr(small.config, key, None) == getattr(expected.config, key, None)
        losses = [measure(model, checkpoint.task, samples).losses for model in (small, expected)]
        torch.testing.assert_close(losses[0], losses[1], rtol=1e-5, atol=1e-5)


@cases
def test_a_dropped_layer_is_gone_whatever_was_removed_of_it_before(case: Case) -> None:
    """Also where the evaluator has the inputs of a layer both of whose blocks were removed, but whose norms stayed."""
    checkpoint, samples = checkpoint_of(case), data_of(case).samples
    parts = checkpoint.model, checkpoint.architecture, checkpoint.task, samples
    fast, plain = PrefixEvaluator(*parts, FULL, budget=10**9), PlainEvaluator(*parts)
    plan = FULL
    for id in ("layer.3.attention.head.1", "layer.3", "layer.3.drop", "layer.1.ffn", "layer.1.drop"):
        plan = plan.apply(parse(id), top_k=None)
        torch.testing.assert_close(fast.losses(plan), plain.losses(plan), rtol=1e-5, atol=2e-6)
        fast.accept(plan)
    assert plan == FULL.dropping((3, 1))


def test_operations_of_dropped_layers_are_not_counted() -> None:
    case = Case("bert", "classification")
    checkpoint, samples = checkpoint_of(case), data_of(case).samples
    parts: dict[str, Any] = {"pooled": True, "lengths": torch.tensor(samples.encoded.lengths)}
    whole = Operations(checkpoint.model, checkpoint.architecture, **parts)
    other = from_memory(shallow(stock_model(case), [0, 2]), tiny_family_tokenizer("bert"))
    fewer = Operations(other.model, other.architecture, **parts)
    assert whole.left(FULL.dropping((1, 3))) == fewer.left(Plan(layers=FULL.layers[:2]))


def test_masking_leaves_no_trace() -> None:
    checkpoint = checkpoint_of(Case("bert", "classification"))
    layers = checkpoint.architecture.layers(checkpoint.model)
    with masked(checkpoint.model, checkpoint.architecture, FULL.dropping((2,))):
        assert "forward" in layers[2].__dict__
    assert "forward" not in layers[2].__dict__


@pytest.mark.parametrize(
    ("family", "changes", "dropped", "reason"),
    [
        ("modernbert", {}, (0,), "layer 0 has no norm before its attention"),
        ("deberta-v2", {}, (0, 2), "its convolution takes the input and the output of layer 0"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, (1,), "scaled by the number of the layer"),
        ("albert", {}, (0,), "share the weights of 2 groups"),
    ],
)
def test_layers_that_stock_transformers_needs_are_refused(
    family: str, changes: dict[str, Any], dropped: tuple[int, ...], reason: str
) -> None:
    whole = from_memory(tiny_family_model(family, **changes), tiny_family_tokenizer(family))
    plan = FULL.dropping(dropped)
    listed = ", ".join(map(str, dropped))
    with pytest.raises(PlanError, match=rf"a {family} model cannot do without the layers {listed}: .*{reason}"):
        compact(whole.model, whole.architecture, plan)
    with pytest.raises(PlanError, match=reason), masked(whole.model, whole.architecture, plan):
        pass


@pytest.mark.parametrize(
    ("family", "changes", "dropped"),
    [
        ("bert", {}, (0, 1)),
        ("deberta-v2", {"conv_kernel_size": 0}, (0, 2)),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, (2, 3)),
        ("albert", {"num_hidden_groups": 1}, (0, 2)),
        ("qwen3", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 2}, (0, 3)),
        ("modernbert", {"global_attn_every_n_layers": 3}, (2, 3)),
    ],
)
def test_settings_of_layers_are_carried_along(family: str, changes: dict[str, Any], dropped: tuple[int, ...]) -> None:
    case, plan = Case(family, "classification"), FULL.dropping(dropped)
    whole = from_memory(tiny_family_model(family, **changes), tiny_family_tokenizer(family))
    other = from_memory(
        shallow(tiny_family_model(family, **changes), kept_without(dropped)), tiny_family_tokenizer(family)
    )
    inputs = data_of(case).samples.batches[0].inputs
    with torch.inference_mode():
        expected = other.model(**inputs).logits
        with masked(whole.model, whole.architecture, plan):
            assert torch.equal(whole.model(**inputs).logits, expected)
        small = compact(whole.model, whole.architecture, plan)
        torch.testing.assert_close(small(**inputs).logits, expected, rtol=1e-5, atol=1e-5)


def test_a_plan_that_drops_all_layers_is_refused() -> None:
    checkpoint = checkpoint_of(Case("bert", "classification"))
    with pytest.raises(PlanError, match="the plan drops all 4 layers; at least one must stay"):
        compact(checkpoint.model, checkpoint.architecture, FULL.dropping(range(4)))


@pytest.mark.parametrize("family", ["llama", "qwen3", "gpt2"])
def test_a_decoder_without_some_layers_generates_with_its_cache(family: str) -> None:
    case = Case(family, "causal_lm")
    checkpoint = checkpoint_of(case)
    plan = FULL.dropping((0, 2)).apply(parse("layer.1.attention"), top_k=None)
    small = compact(checkpoint.model, checkpoint.architecture, plan)
    ids = torch.tensor([[5, 6, 7, 8]])
    settings = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    cached, anew = (small.generate(ids, use_cache=use_cache, **settings) for use_cache in (True, False))
    assert torch.equal(cached, anew)
    body = "attn" if family == "gpt2" else "self_attn"
    assert [getattr(layer, body).layer_idx for layer in checkpoint.architecture.layers(small)] == [0, 1]
