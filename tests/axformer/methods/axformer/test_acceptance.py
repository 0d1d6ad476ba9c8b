from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.config import make_config
from axformer.methods.axformer.acceptance import Bounds, Rule, decided, verdict_of
from axformer.methods.targets import Targets
from axformer.plan.elements import Dimensions, layer
from axformer.plan.plan import Plan
from axformer.plan.trial import Verdict

TOTAL = 10
losses = st.floats(0, 100, allow_nan=False)
counts = st.integers(0, TOTAL)
margins = st.none() | st.floats(1, 3)
rules = st.builds(
    Rule,
    min_loss=losses,
    helped_above=st.sampled_from([None, 0.0, 4, 5.0, 9.0]),
    loss_margin=st.floats(0.01, 1),
    refine_margin=margins,
    budget=st.none() | losses,
)


@pytest.mark.parametrize(
    ("loss", "helped", "expected"),
    [(0.9, 6, True), (0.9, 5, False), (1.0, 10, False), (1.1, 10, False), (float("nan"), 10, False)],
)
def test_both_halves_of_the_rule_must_hold(loss: float, helped: int, expected: bool) -> None:
    verdict = verdict_of(loss, helped, Rule(min_loss=1.0, helped_above=TOTAL / 2))
    assert verdict is (Verdict.ACCEPT if expected else Verdict.REJECT)


@given(losses, counts, rules)
def test_a_tighter_margin_accepts_no_more(loss: float, helped: int, rule: Rule) -> None:
    if verdict_of(loss, helped, rule) is Verdict.ACCEPT:
        assert verdict_of(loss, helped, replace(rule, loss_margin=1.0)) is Verdict.ACCEPT


@given(losses, counts, rules)
def test_what_lowers_the_loss_is_accepted_or_refined_where_it_has_parts(loss: float, helped: int, rule: Rule) -> None:
    refined = replace(rule, refine_margin=1.1)
    assert not loss < rule.line or verdict_of(loss, helped, refined) is not Verdict.REJECT


@given(rules, st.tuples(losses, losses, losses).map(sorted), st.tuples(counts, counts, counts).map(sorted))
def test_what_is_decided_early_is_decided_so_in_the_end(rule: Rule, loss: list[float], helped: list[int]) -> None:
    early = decided(Bounds((loss[0], loss[2]), (helped[0], helped[2])), rule)
    assert early in (None, verdict_of(loss[1], helped[1], rule))


@given(losses, counts, rules)
def test_what_is_measured_to_the_end_is_decided(loss: float, helped: int, rule: Rule) -> None:
    assert decided(Bounds((loss, loss), (helped, helped)), rule) is verdict_of(loss, helped, rule)


@given(losses, counts, rules)
def test_a_budget_is_the_same_rule_around_another_loss(loss: float, helped: int, rule: Rule) -> None:
    assert verdict_of(loss, helped, rule) is verdict_of(loss, helped, replace(rule, min_loss=rule.line, budget=None))


@given(losses, counts, rules, st.floats(1, 3))
def test_a_larger_budget_accepts_no_less(loss: float, helped: int, rule: Rule, factor: float) -> None:
    if verdict_of(loss, helped, rule) is Verdict.ACCEPT:
        assert verdict_of(loss, helped, replace(rule, budget=factor * rule.line)) is Verdict.ACCEPT


sizes = st.floats(0.01, 1)
speedups = st.floats(1, 10)


def is_reached(size: float, speedup: float, **goal: float) -> bool:
    """Whether a plan of this size and speed is all that was asked for."""
    full = Plan.full(Dimensions(layers=1, heads=1, hidden_size=4, intermediate_size=4))

    def parameters(plan: Plan) -> float:
        return 1.0 if plan == full else size

    def operations(plan: Plan) -> float:
        return speedup if plan == full else 1.0

    targets = Targets(make_config("paper", goal), full, parameters, operations, parameters, operations)  # type: ignore[arg-type]
    return targets.is_reached(full.apply(layer(0), top_k=None))


@given(sizes, speedups, st.floats(0.01, 0.99), st.floats(1.01, 9))
def test_a_goal_is_met_where_each_of_its_parts_is(size: float, speedup: float, least: float, most: float) -> None:
    both = is_reached(size, speedup, target_size=least, target_speedup=most)
    assert both is (is_reached(size, speedup, target_size=least) and is_reached(size, speedup, target_speedup=most))
    assert is_reached(size, speedup, target_size=least) is (size <= least)
    assert is_reached(size, speedup, target_speedup=most) is (speedup >= most)


@given(sizes, speedups)
def test_a_pass_without_a_goal_goes_on(size: float, speedup: float) -> None:
    assert not is_reached(size, speedup)
