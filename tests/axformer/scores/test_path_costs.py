"""What is taken from a path for a wish keeps it, and nothing on the path keeps it better."""

import random

import pytest

from axformer.scores.path_costs import NOTEWORTHY, costs_of, told_beyond
from axformer.wire.metrics import first_metric
from tests.axformer.drawing.test_curve import some_path


@pytest.mark.parametrize("seed", range(20))
def test_the_fastest_model_within_some_points_is_taken_and_the_best_of_those_that_are_fast_enough(seed: int) -> None:
    (costs,) = costs_of(some_path(seed, "test", models=12))
    wish = random.Random(seed)
    allowed, times = wish.uniform(0, 30), wish.uniform(1, 1.8)
    taken = costs.within(allowed)
    assert taken.cost <= allowed
    assert taken.is_best
    assert all(model.times <= taken.times for model in costs.models if model.cost <= allowed)
    fast = [model for model in costs.models if model.times >= times]
    best = costs.at_least(times)
    assert (best is None) == (not fast)
    if best is not None:
        assert best.times >= times
        assert best.is_best
        assert all(model.cost >= best.cost for model in fast)


@pytest.mark.parametrize("seed", range(20))
def test_a_model_is_worth_a_look_only_if_no_other_is_as_fast_and_as_good(seed: int) -> None:
    (costs,) = costs_of(some_path(seed, "test", models=12))
    for model in costs.models:
        beating = [
            other
            for other in costs.models
            if other.times >= model.times
            and other.cost <= model.cost
            and (other.times, other.cost) != (model.times, model.cost)
        ]
        assert model.is_best is (not beating or model.point.seq == 0)
    assert [model.times for model in costs.best] == sorted(model.times for model in costs.best)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("allowed", [None, 0.0, 20.0])
def test_what_else_the_path_offers_is_faster_and_within_what_was_allowed_if_anything_is(
    seed: int, allowed: float | None
) -> None:
    path = some_path(seed, "test", models=12)
    (costs,) = costs_of(path)
    kept = next(model for model in costs.models if model.point.kept)
    found = costs.beyond(allowed)
    faster = [model for model in costs.models if model.times >= NOTEWORTHY * kept.times]
    assert (found is None) == (not faster)
    if found is not None:
        assert found in faster
        affordable = [model for model in faster if model.cost <= (allowed or 0.0)]
        assert found.cost <= (allowed or 0.0) if affordable else found.cost == min(model.cost for model in faster)


def test_what_else_the_path_offers_is_told_with_its_price() -> None:
    path = [point.model_copy(update={"kept": point.seq == 0}) for point in some_path(0, "test", models=3)]
    told = told_beyond(path, 1e6, is_certified=True)
    assert told is not None
    sentence, model = told
    assert model.point.seq == 2
    price = f"held-out exact match {model.change:+.2f} points, without a certificate"
    assert sentence == f"The path has more: 1.07 times fewer operations, {price}."
    assert told_beyond([], 1.0, is_certified=False) is None


def test_changes_are_in_points_of_a_share_and_in_percent_of_a_loss() -> None:
    path = some_path(0, "test", "confirming", models=3)
    held_out, confirming = costs_of(path)
    assert (held_out.name, confirming.name, held_out.unit) == (
        "held-out exact match",
        "confirming exact match",
        "points",
    )
    first, last = (path[place].test["exact_match"] for place in (0, -1))
    assert held_out.models[-1].change == pytest.approx(100 * (last - first))
    assert held_out.models[-1].cost == pytest.approx(100 * (first - last))
    (deciding,) = costs_of(some_path(0, models=3))
    assert (deciding.name, deciding.unit) == ("deciding loss", "%")
    assert deciding.models[-1].cost == pytest.approx(100 * (0.58 / 0.6 - 1))  # lower is better


def test_the_first_metric_is_found_in_any_order() -> None:
    for figures, name in (
        (("f1", "loss", "accuracy"), "accuracy"),
        (("f1", "loss", "exact_match"), "exact_match"),
        (("loss", "accuracy", "perplexity"), "perplexity"),
        (("spearman", "pearson"), "pearson"),
        (("loss",), "loss"),
        (("loss", "own"), "own"),
    ):
        assert first_metric(figures) == name
