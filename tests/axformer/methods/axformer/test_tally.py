"""What is known of a trial while its samples come in never contradicts what is known in the end."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from axformer.evaluation.base import Part
from axformer.methods.axformer.acceptance import Rule, decided, verdict_of
from axformer.methods.axformer.judge import Tally
from axformer.plan.trial import Verdict

sizes = st.integers(1, 40)
seeds = st.integers(0, 10_000)


def losses_of(seed: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Losses and what they are compared with, some of them equal."""
    generator = torch.Generator().manual_seed(seed)
    reference = torch.rand(size, generator=generator) * 2
    change = torch.randn(size, generator=generator) * 0.1 * (torch.rand(size, generator=generator) < 0.8)
    return (reference + change).clamp(min=0), reference


@given(seeds, sizes, st.booleans(), st.floats(0.5, 1.5), st.none() | st.floats(1, 2), st.integers(1, 7))
def test_an_early_verdict_is_the_verdict(
    seed: int, size: int, ties_help: bool, least: float, refine_margin: float | None, step: int
) -> None:
    losses, reference = losses_of(seed, size)
    rule = Rule(least * reference.mean().item(), size / 2, refine_margin=refine_margin)
    helps = losses <= reference if ties_help else losses < reference
    expected = verdict_of(losses.mean().item(), int(helps.sum()), rule)
    tally = Tally(torch.ones(size, dtype=torch.bool), reference, ties_help=ties_help)
    for places in torch.randperm(size).split(step):
        assert decided(tally.bounds, rule) in (None, expected)
        tally.add(Part(places, losses[places]))
    assert decided(tally.bounds, rule) is expected
    assert tally.is_complete
    assert tally.loss == losses.mean().item()
    assert tally.helped == helps.sum()


def test_half_the_samples_not_helped_decide() -> None:
    tally = Tally(torch.ones(10, dtype=torch.bool), torch.ones(10), ties_help=False)
    rule = Rule(1.0, 5)
    tally.add(Part(torch.arange(4), torch.full((4,), 1.01)))
    assert decided(tally.bounds, rule) is None
    tally.add(Part(torch.arange(4, 5), torch.full((1,), 1.01)))
    assert decided(tally.bounds, rule) is Verdict.REJECT
