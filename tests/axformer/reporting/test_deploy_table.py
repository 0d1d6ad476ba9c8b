"""The table of forms that can be deployed, and the form that it advises."""

from typing import Any

import pytest

from axformer.reporting.deploy_table import BEFORE, deployables
from axformer.reporting.table import UNKNOWN


def form(name: str, ms: float, accuracy: float, ends: tuple[float, float] | None = None, **more: Any) -> dict[str, Any]:
    speed = [
        {"batch": 1, "length": None, "p50_ms": ms, "inputs_per_second": 1000 / ms},
        {"batch": 32, "length": None, "p50_ms": 20 * ms, "inputs_per_second": 1600 / ms},
        {"batch": 1, "length": 64, "p50_ms": 99.0, "inputs_per_second": 9.0},
    ]
    test = {"loss": 0.3, "accuracy": accuracy}
    change = None if ends is None else {"differences": {"accuracy": {"value": accuracy - 0.85, "interval": list(ends)}}}
    made = {"name": name, "made": True, "directory": None if name == "base" else name, "bytes": 90_000_000}
    return made | {"speed": speed, "validation": test, "test": test, "test_change": change} | more


def report(*forms: dict[str, Any], points: float | None = None) -> dict[str, Any]:
    certificate = None if points is None else {"points": points}
    return {"base_form": form("base", 10.0, 0.85), "forms": list(forms), "certificate": certificate}


def test_each_form_has_its_metric_its_change_and_its_speed_against_the_untouched_model() -> None:
    found = deployables(
        report(form("compact", 5.0, 0.84, (-0.02, 0.001)), form("onnx_int8", 2.0, 0.83, (-0.04, -0.01)))
    )
    assert found is not None
    assert (found.metric, found.data) == ("accuracy", "held-out")
    assert [row.name for row in found.rows] == [BEFORE, "compact", "onnx_int8"]
    assert [row.times for row in found.rows] == [1.0, 2.0, 5.0]
    text = found.table()
    assert text.head == ["", "held-out accuracy", "change", "one input, ms", "times as fast", "inputs a second", "MB"]
    assert text.rows[0] == ["before", "85.00", "", "10.00", "", "160", "90.0"]
    assert text.rows[1] == ["PyTorch", "84.00", "-1.00 [-2.00, +0.10]", "5.00", "2.00", "320", "90.0"]


def test_the_fastest_form_that_is_not_reliably_worse_is_advised() -> None:
    within_noise, worse = form("compact", 5.0, 0.84, (-0.02, 0.001)), form("onnx_int8", 2.0, 0.83, (-0.04, -0.01))
    found = deployables(report(within_noise, worse))
    assert found is not None
    assert found.sentence == (
        "Deploy compact/ (PyTorch): 2.0 times as fast with one input, held-out accuracy 84.00 (before 85.00)."
    )


def test_a_busy_machine_is_told_with_the_form_to_deploy() -> None:
    made = report(form("compact", 5.0, 0.85))
    for share, is_busy in ((None, False), (0.97, False), (0.42, True)):
        made["forms"][0]["speed"][0]["processor_share"] = share
        found = deployables(made)
        assert found is not None
        assert ("had a processor for 42% of the time" in found.sentence) is is_busy


def test_a_fall_within_the_points_that_were_allowed_is_allowed() -> None:
    found = deployables(report(form("onnx_int8", 2.0, 0.835, (-0.028, -0.005)), points=2.0))
    assert found is not None
    assert found.best is not None
    assert found.best.name == "onnx_int8"
    strict = deployables(report(form("onnx_int8", 2.0, 0.835, (-0.028, -0.022)), points=2.0))
    assert strict is not None
    assert strict.best is None


def test_a_fall_of_exactly_the_points_is_allowed() -> None:
    assert 0.84 - 0.85 < -0.01, "as a difference of two floats"
    content = report(form("compact", 5.0, 0.84), points=1.0)
    for one in (content["base_form"], *content["forms"]):
        del one["test"]
    found = deployables(content)
    assert found is not None
    assert found.best is not None


def test_where_a_speed_was_asked_for_and_reached_the_fastest_form_is_advised_at_any_cost() -> None:
    slow = report(form("compact", 2.0, 0.6, (-0.3, -0.2)))
    for target, best in ((None, None), ({"reached": False}, None), ({"reached": True}, "compact")):
        found = deployables(slow | {"target": target})
        assert found is not None
        assert (found.best.name if found.best else None) == best


def test_the_first_metric_is_the_tasks_own_in_whatever_order_a_database_gives_them() -> None:
    shuffled = report(form("compact", 5.0, 0.84))
    for one in (shuffled["base_form"], *shuffled["forms"]):
        one["test"] = {"f1": 0.5, "loss": 0.3, "accuracy": 0.84}
    found = deployables(shuffled)
    assert found is not None
    assert found.metric == "accuracy"


def test_a_model_that_is_hardly_faster_is_not_worth_it() -> None:
    found = deployables(report(form("compact", 9.9, 0.85, (0.0, 0.0))))
    assert found is not None
    assert found.sentence == "No form is both faster and as good: keep your model."


@pytest.mark.parametrize("missing", ["compact", "base"])
def test_without_held_out_figures_of_every_form_the_validation_data_is_shown(missing: str) -> None:
    content = report(form("compact", 5.0, 0.84, (-0.02, 0.001)))
    one = content["base_form"] if missing == "base" else content["forms"][0]
    del one["test"]
    found = deployables(content)
    assert found is not None
    assert (found.data, found.rows[1].interval) == ("validation", None)


def test_a_metric_that_is_no_share_is_not_given_in_points_and_less_of_it_is_better() -> None:
    content = report(form("compact", 5.0, 0.84), form("onnx", 4.0, 0.84))
    for one, value in zip((content["base_form"], *content["forms"]), (12.0, 11.0, 13.0), strict=True):
        one["test"] = {"loss": 2.0, "perplexity": value}
    found = deployables(content)
    assert found is not None
    assert found.table().rows[1][1:3] == ["11.0000", "-1.0000"]
    assert found.best is not None
    assert found.best.name == "compact"


def test_what_a_report_of_an_earlier_version_lacks_is_unknown() -> None:
    assert deployables({"base": {}}) is None
    bare = {"name": "compact", "made": True}
    found = deployables({"base_form": {"name": "base", "made": True}, "forms": [bare, {"name": "onnx", "made": False}]})
    assert found is not None
    assert found.table().rows == [
        ["before", UNKNOWN, "", UNKNOWN, "", UNKNOWN, UNKNOWN],
        ["PyTorch", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN],
    ]


@pytest.mark.parametrize(("ms", "best"), [(5.1, "stock"), (6.0, "compact"), (9.9, "compact")])
def test_a_form_that_needs_nothing_installed_is_advised_where_it_is_about_as_fast(ms: float, best: str) -> None:
    found = deployables(report(form("stock", ms, 0.85, (-0.01, 0.01)), form("compact", 5.0, 0.85, (-0.01, 0.01))))
    assert found is not None
    assert found.best is not None
    assert found.best.name == best
