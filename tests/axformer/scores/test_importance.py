"""Laws of the scores, for every family."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

from axformer.config import PassConfig
from axformer.data.batches import Samples
from axformer.intake.dataset import prepare
from axformer.model.masking import masked
from axformer.model.signals import Signals
from axformer.plan.blocks import Block, BlockKind, all_blocks
from axformer.plan.plan import LayerPlan, Plan
from axformer.scores.importance import SCORES, Ranked, owners_of, scores_of
from tests.family_cases import CONFIG, Case, all_cases, checkpoint_of, data_of

FAMILIES = [case for case in all_cases() if case.task == "classification"]
WINDOWS = Case("bert", "question_answering")
CASES = [*FAMILIES, WINDOWS]
TIED = Case("albert", "classification")


def ranked_of(case: Case, samples: Samples | None = None, plan: Plan | None = None) -> Ranked:
    checkpoint = checkpoint_of(case)

    def masking() -> Any:
        return nullcontext() if plan is None else masked(checkpoint.model, checkpoint.architecture, plan)

    return Ranked(
        checkpoint, samples or data_of(case).samples, masking, share=0.3, seed=1, owners=owners_of(checkpoint)
    )


@pytest.mark.parametrize("name", sorted(SCORES))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_unit_of_every_family_has_a_score(case: Case, name: str) -> None:
    dimensions = checkpoint_of(case).dimensions
    scores = scores_of(name, ranked_of(case))
    sizes = [dimensions.heads, dimensions.intermediate_size] * dimensions.layers
    assert [len(scores[block]) for block in all_blocks(dimensions.layers)] == sizes
    for values in scores.values():
        assert np.isfinite(values).all()
        assert (values >= 0).all()
        assert name == "magnitude" or len(set(values.tolist())) > 1, "units differ"


@pytest.mark.parametrize("name", ["taylor", "fisher", "gradient", "activation"])
@pytest.mark.parametrize("case", [Case("bert", "classification"), Case("gpt2", "classification"), WINDOWS], ids=str)
def test_scores_do_not_depend_on_batches(case: Case, name: str) -> None:
    config = PassConfig(**{**CONFIG.model_dump(), "batch_tokens": 1})
    alone = prepare(data_of(case).rows, checkpoint_of(case), config).samples
    for block, values in scores_of(name, ranked_of(case, alone)).items():
        np.testing.assert_allclose(values, scores_of(name, ranked_of(case))[block], rtol=2e-3, atol=1e-7)


@pytest.mark.parametrize("case", FAMILIES, ids=str)
def test_l1_is_the_mean_over_the_weights_that_a_unit_owns(case: Case) -> None:
    checkpoint = checkpoint_of(case)
    signals = Signals(checkpoint.model, checkpoint.architecture, data_of(case).samples)
    scores = scores_of("l1", ranked_of(case))
    for number, weights in enumerate(signals.blocks()):
        for unit in (0, signals.units(number) - 1):
            owned = [
                part.part([unit], signals.units(number)).abs().flatten() for part in (*weights.inputs, weights.output)
            ]
            assert scores[Block.at(number)][unit] == pytest.approx(torch.cat(owned).double().mean().item(), rel=1e-6)


def test_taylor_is_the_mean_absolute_gate_gradient_of_the_samples() -> None:
    samples, checkpoint = data_of(WINDOWS).samples, checkpoint_of(WINDOWS)
    assert not samples.one_row_each, "some questions are split into windows"
    parts = list(Signals(checkpoint.model, checkpoint.architecture, samples).gradients(checkpoint.task))
    rows = torch.cat([places for places, _ in parts]).argsort()
    scores = scores_of("taylor", ranked_of(WINDOWS))
    for block, values in scores.items():
        by_row = torch.cat([blocks[block.number] for _, blocks in parts])[rows]
        by_sample = torch.stack([samples.per_sample(column) for column in by_row.T], dim=1)
        np.testing.assert_allclose(values, by_sample.abs().double().mean(dim=0).numpy(), rtol=1e-4, atol=1e-8)


def test_the_gradient_of_weights_is_that_of_the_mean_loss() -> None:
    case = Case("bert", "classification")
    checkpoint, samples = checkpoint_of(case), data_of(case).samples
    block = checkpoint.architecture.ffn.weights(checkpoint.architecture.layers(checkpoint.model)[1])
    parameters = [part.parameter for part in (*block.inputs, block.output)]
    for parameter in parameters:
        parameter.requires_grad_(True)
    try:
        losses = [checkpoint.task.losses(checkpoint.model(**batch.inputs), batch) for batch in samples.batches]
        into, bias, out = (slope.abs() for slope in torch.autograd.grad(torch.cat(losses).mean(), parameters))
    finally:
        for parameter in parameters:
            parameter.requires_grad_(False)
    expected = torch.cat([into, bias[:, None], out.T], dim=1).double().mean(dim=1)
    np.testing.assert_allclose(
        scores_of("gradient", ranked_of(case))[Block(1, BlockKind.FFN)], expected.numpy(), rtol=1e-3, atol=1e-9
    )
    assert not any(parameter.requires_grad for parameter in parameters)


@pytest.mark.parametrize("name", sorted(SCORES))
def test_the_uses_of_shared_weights_have_one_score(name: str) -> None:
    scores, owners = scores_of(name, ranked_of(TIED)), owners_of(checkpoint_of(TIED))
    assert len(set(owners.values())) < len(owners)
    for block, values in scores.items():
        assert (values == scores[owners[block]]).all()


def test_the_gradients_of_shared_weights_are_summed_before_the_absolute_value() -> None:
    checkpoint, samples = checkpoint_of(TIED), data_of(TIED).samples
    signals = Signals(checkpoint.model, checkpoint.architecture, samples)
    uses = [block for block, owner in owners_of(checkpoint).items() if owner == Block.at(0)]
    assert len(uses) > 1
    slopes = torch.cat(
        [sum(by_block[block.number] for block in uses) for _, by_block in signals.gradients(checkpoint.task)]
    )
    expected = slopes.double().abs().mean(dim=0)
    np.testing.assert_allclose(scores_of("taylor", ranked_of(TIED))[Block.at(0)], expected.numpy(), rtol=1e-4)


def test_a_unit_that_has_left_has_no_importance() -> None:
    case = Case("bert", "classification")
    dimensions = checkpoint_of(case).dimensions
    full = Plan.full(dimensions)
    cut: LayerPlan = full.layers[1].model_copy(
        update={"heads": tuple(range(1, dimensions.heads)), "neurons": ((2, 9),)}
    )
    plan = full.model_copy(update={"layers": (full.layers[0], cut, *full.layers[2:])})
    scores = scores_of("taylor", ranked_of(case, plan=plan))
    assert scores[Block(1, BlockKind.ATTENTION)][0] == 0
    assert not scores[Block(1, BlockKind.FFN)][[0, 1, 9]].any()
    assert scores[Block(1, BlockKind.FFN)][2:9].all()
