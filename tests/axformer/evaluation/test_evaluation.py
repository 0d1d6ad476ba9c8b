"""The law of the evaluators: the one that runs only what changes measures what the whole forward pass measures."""

from dataclasses import fields

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axformer.architectures.registry import ARCHITECTURES
from axformer.config import PassConfig
from axformer.data.reading import rows_of
from axformer.evaluation.changes import first_changed_block, longest_untouched
from axformer.evaluation.prefix import PrefixEvaluator, Techniques
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import DataSet, prepare
from axformer.plan.elements import Element, attention, ffn, hard_attention, head, neurons
from axformer.plan.plan import Plan
from tests.family_cases import Case, all_cases, checkpoint_of, data_of, stock_model
from tests.plain import PlainEvaluator
from tests.tiny_families import tiny_family_tokenizer
from tests.tiny_models import tiny_model, tiny_rows, tiny_tokenizer

CHECKPOINT = from_memory(tiny_model(), tiny_tokenizer())
BUDGET = 1_000_000_000
"""Bytes; more than any of these needs."""
FULL = Plan.full(CHECKPOINT.dimensions)

layers = st.integers(0, 2)
elements = st.one_of(
    layers.map(attention),
    layers.map(ffn),
    layers.map(hard_attention),
    st.builds(head, layers, st.integers(0, 3)),
    st.builds(lambda layer, group: neurons(layer, 8 * group, 8 * group + 8), layers, st.integers(0, 5)),
)


def data_set(batch_tokens: int) -> DataSet:
    rows = rows_of(tiny_rows(30, pairs=True))
    return prepare(rows, CHECKPOINT, PassConfig(batch_tokens=batch_tokens))


def same(fast: torch.Tensor, slow: torch.Tensor) -> bool:
    """Equal but for rounding, as ALGORITHM's exactness has it: 1e-5 relative."""
    return torch.allclose(fast, slow, rtol=1e-5, atol=1e-6)


techniques = st.builds(Techniques, *[st.booleans()] * len(fields(Techniques)))
budgets = st.sampled_from([0, 20_000, 60_000, BUDGET])
"""Bytes: nothing fits, some does, all does."""


@pytest.mark.slow
@given(
    st.sampled_from(sorted(ARCHITECTURES)),
    st.sampled_from(["classification", "token_classification"]),
    st.lists(st.tuples(elements, st.booleans(), st.booleans()), max_size=8),
    st.integers(1, 30),
    st.sampled_from([1, 60, 10_000]),
    budgets,
    techniques,
)
@settings(deadline=None, max_examples=60)
def test_fast_equals_plain(
    family: str,
    task: str,
    steps: list[tuple[Element, bool, bool]],
    top_k: int,
    batch_tokens: int,
    budget: int,
    techniques: Techniques,
) -> None:
    """Over models, plans, lengths, budgets, and every choice of techniques."""
    case = Case(family, task)
    checkpoint = checkpoint_of(case if case in all_cases() else Case(family, "classification"))
    samples = prepare(data_of(case).rows, checkpoint, PassConfig(batch_tokens=batch_tokens)).samples
    parts = checkpoint.model, checkpoint.architecture, checkpoint.task, samples
    plan = Plan.full(checkpoint.dimensions)
    plain, fast = PlainEvaluator(*parts), PrefixEvaluator(*parts, plan, budget=budget, techniques=techniques)
    for element, is_measured, is_accepted in steps:
        then = plan.apply(element, top_k=top_k)
        if is_measured:
            assert same(fast.losses(then), plain.losses(then))
        if is_accepted:
            fast.accept(then)
            plan = then
        assert fast.activations.held_bytes <= budget
    assert same(fast.losses(plan), plain.losses(plan))
    assert fast.activations.held_bytes <= budget


@given(st.integers(1, 30), layers)
@settings(deadline=None, max_examples=25)
def test_hard_attention_leaves_short_samples_to_the_last_bit(top_k: int, layer: int) -> None:
    samples = data_set(60).samples
    evaluator = PrefixEvaluator(
        CHECKPOINT.model, CHECKPOINT.architecture, CHECKPOINT.task, samples, FULL, budget=BUDGET
    )
    before = evaluator.losses(FULL)
    after = evaluator.losses(FULL.apply(hard_attention(layer), top_k=top_k))
    short = samples.lengths <= top_k
    assert torch.equal(before[short], after[short])


@given(elements, elements)
def test_the_first_changed_block_is_the_elements_own(element: Element, other: Element) -> None:
    plan = FULL.apply(other, top_k=5)
    then = plan.apply(element, top_k=5)
    block = 2 * element.layer + (element.kind.value in ("ffn", "neurons"))
    assert first_changed_block(plan, then) == (6 if then == plan else block)


def test_only_hard_attention_leaves_samples_untouched() -> None:
    hard = FULL.apply(hard_attention(1), top_k=7)
    assert longest_untouched(FULL, hard) == 7
    assert longest_untouched(hard, FULL) == 0
    assert longest_untouched(FULL, FULL.apply(head(1, 0), top_k=7)) == 0
    assert longest_untouched(FULL, hard.apply(ffn(0), top_k=7)) == 0


@given(st.lists(st.booleans(), min_size=30, max_size=30))
@settings(deadline=None, max_examples=20)
def test_what_is_seen_first_changes_the_order_and_no_loss(wanted: list[bool]) -> None:
    samples = data_set(60).samples
    parts = CHECKPOINT.model, CHECKPOINT.architecture, CHECKPOINT.task, samples
    evaluator = PrefixEvaluator(*parts, FULL, budget=BUDGET)
    plan = FULL.apply(attention(1), top_k=5)
    usual = evaluator.losses(plan)
    evaluator.see_first(torch.tensor(wanted))
    seen = list(evaluator.parts(plan))
    assert torch.equal(evaluator.losses(plan), usual)
    sizes = {tuple(batch.rows.tolist()): batch.size for batch in samples.batches}
    shares = [sum(wanted[place] for place in part.places) / sizes[tuple(part.places.tolist())] for part in seen]
    assert shares == sorted(shares, reverse=True)


def test_batching_by_tokens_covers_every_sample_once_and_keeps_its_limit() -> None:
    samples = data_set(60).samples
    places = torch.cat([batch.rows for batch in samples.batches])
    assert places.sort().values.tolist() == list(range(30))
    assert all(len(batch.rows) == 1 or len(batch.rows) * batch.tokens <= 60 for batch in samples.batches)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("family", ["bert", "modernbert", "xlnet"])
def test_fast_equals_plain_wherever_padding_stands(family: str, side: str) -> None:
    """Some heads read the first token, others the first that is no padding."""
    case = Case(family, "multiple_choice")
    tokenizer = tiny_family_tokenizer(family)
    tokenizer.padding_side = side
    checkpoint = from_memory(stock_model(case), tokenizer)
    samples = prepare(data_of(case).rows, checkpoint, PassConfig(batch_tokens=10_000)).samples
    assert not samples.batches[0].inputs["attention_mask"].all()
    parts = checkpoint.model, checkpoint.architecture, checkpoint.task, samples
    full = Plan.full(checkpoint.dimensions)
    plain, fast = PlainEvaluator(*parts), PrefixEvaluator(*parts, full, budget=BUDGET)
    for plan in (full, full.apply(ffn(3), top_k=1), full.apply(head(2, 1), top_k=1)):
        assert same(fast.losses(plan), plain.losses(plan))
