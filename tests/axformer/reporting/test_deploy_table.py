"""The table of forms that can be deployed, and the form that it advises: one that is shown to be within what was allowed."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axformer.forms.kinds import KINDS
from axformer.reporting.deploy_table import deployables
from axformer.reporting.deployable import BEFORE, Deployables
from axformer.reporting.rendering import UNKNOWN
from axformer.scores.confidence import RESAMPLES
from axformer.scores.paired_tests import ALPHA, exact_p_value
from axformer.wire.verdicts import Standing

ROWS = 2000
BEFORE_RIGHT = 0.85


def form(name: str, times: float, lost: int = 0, gained: int = 0, rows: int = ROWS, **more: Any) -> dict[str, Any]:
    """A form with a speed and with answers gained and lost on held-out rows."""
    ms, change = 10.0 / times, (gained - lost) / rows
    accuracy = BEFORE_RIGHT + change
    speed = [
        {"batch": 1, "length": None, "p50_ms": ms, "inputs_per_second": 1000 / ms}
        | {"times": times, "times_interval": [0.97 * times, 1.03 * times]},
        {"batch": 32, "length": None, "p50_ms": 20 * ms, "inputs_per_second": 1600 / ms},
        {"batch": 1, "length": 64, "p50_ms": 99.0, "inputs_per_second": 9.0},
    ]
    test = {"loss": 0.3, "accuracy": accuracy}
    difference = {"value": change, "interval": list(interval_of(lost, gained, rows))}
    cost = {
        "differences": {"accuracy": difference},
        "mcnemar": {"gained": gained, "lost": lost},
        "changed": lost + gained,
    }
    made = {
        "name": name,
        "made": True,
        "directory": KINDS[name].directory if name in KINDS else None,
        "bytes": 90_000_000,
    }
    known = {"speed": speed, "validation": test, "test": test, "cost": None if name == "base" else cost}
    return made | known | {"classes_answered": 2} | more


def interval_of(lost: int, gained: int, rows: int) -> tuple[float, float]:
    """The percentile bootstrap of the change, which is what reports hold."""
    shares = [lost / rows, gained / rows, 1 - (lost + gained) / rows]
    drawn = np.random.default_rng(0).multinomial(rows, shares, RESAMPLES)
    low, high = np.quantile((drawn[:, 1] - drawn[:, 0]) / rows, [0.025, 0.975])
    return float(low), float(high)


def report(*forms: dict[str, Any], points: float = 1.0, rows: int = ROWS, **more: Any) -> dict[str, Any]:
    judged = {"data": "test", "rows": rows, "points": points, "guess": 0.5, "is_share": True}
    parts = {"base_form": form("base", 1.0, rows=rows), "forms": list(forms), "judged": judged, "removed": ["L0.ffn"]}
    return parts | more


def found(*forms: dict[str, Any], **more: Any) -> Deployables:
    made = deployables(report(*forms, **more))
    assert made is not None
    return made


def best(*forms: dict[str, Any], **more: Any) -> str | None:
    chosen = found(*forms, **more).best
    return None if chosen is None else chosen.name


def test_each_form_has_its_metric_its_change_and_its_speed_against_the_untouched_model() -> None:
    made = found(form("compact", 2.0, lost=30, gained=10), form("onnx_int8", 5.0, lost=50))
    assert (made.metric, made.data) == ("accuracy", "held-out")
    assert [row.name for row in made.rows] == [BEFORE, "compact", "onnx_int8"]
    assert [row.times for row in made.rows] == [1.0, 2.0, 5.0]
    text = made.table()
    assert text.head == [
        *(
            "",
            "held-out accuracy",
            "change",
            "answers changed",
            "one input, ms",
            "times as fast",
            "inputs a second",
            "MB",
        )
    ]
    assert text.rows[0] == ["before", "85.00", "", "", "10.00", "", "160", "90.0"]
    low, high = (100 * end for end in interval_of(30, 10, ROWS))
    change = f"-1.00 [{low:+.2f}, {high:+.2f}]"
    assert text.rows[1] == ["PyTorch", "84.00", change, "2.0%", "5.00", "2.00 [1.94, 2.06]", "320", "90.0"]


def test_a_form_that_is_not_timed_is_shown_and_never_advised() -> None:
    half = form("onnx_fp16", 9.0, speed=[])
    text = found(form("compact", 1.0), half).table()
    assert [row[0] for row in text.rows] == ["before", "PyTorch", "ONNX fp16"]
    assert text.rows[2][1] == "85.00"
    assert text.rows[2][4:7] == [UNKNOWN] * 3
    assert best(form("compact", 1.0), half) is None
    assert best(half, form("onnx_int8", 2.0)) == "onnx_int8"
    assert found(form("onnx", 2.0), half).pruned.name == "onnx"


@pytest.mark.parametrize(
    ("lost", "gained", "rows", "points", "target"),
    [(8, 4, 100, 2.0, None), (10, 4, 60, 1.0, None), (800, 120, 2000, 5.0, {"reached": True})],
    ids=["4 points of 2 on 100 rows", "10 points of none on 60 rows", "34 points where a speed was reached"],
)
def test_a_form_that_lost_more_than_was_allowed_or_may_have_is_not_advised(
    lost: int, gained: int, rows: int, points: float, target: dict[str, bool] | None
) -> None:
    whole = form("compact", 1.0, rows=rows)
    made = found(whole, form("onnx_int8", 5.0, lost, gained, rows), points=points, rows=rows, target=target)
    assert made.best is None
    assert made.sentence.startswith("Keep your model: ONNX int8 is 5.0 times as fast [4.8, 5.2], but ")
    assert made.advice().form is None


def test_a_coin_is_never_advised() -> None:
    coin = form("onnx_int8", 30.0, lost=750, gained=46)
    made = found(coin, points=90.0)
    assert made.rows[1].judgement.standing is Standing.GUESSING
    assert made.sentence == (
        "Keep your model: ONNX int8 is 30.0 times as fast [29.1, 30.9], but is no better than guessing "
        "(held-out accuracy 49.80)."
    )
    constant = found(form("onnx_int8", 30.0, classes_answered=1))
    assert constant.best is None
    assert "answers only 1 of 2 classes of your model" in constant.sentence


@settings(max_examples=40)  # each takes a tenth of a second
@given(
    rows=st.integers(20, 5000),
    lost=st.floats(0.0, 0.2),
    gained=st.floats(0.0, 0.2),
    points=st.floats(0.1, 20.0),
)
def test_whatever_is_advised_passes_the_exact_test_and_has_its_whole_interval_within_the_limit(
    rows: int, lost: float, gained: float, points: float
) -> None:
    counts = round(lost * rows), round(gained * rows)
    made = found(form("compact", 2.0, *counts, rows), points=points, rows=rows)
    is_shown = exact_p_value(counts[1], counts[0], rows, points / 100) <= ALPHA
    is_within = -interval_of(*counts, rows)[0] <= points / 100 + 1e-9
    assert (made.best is not None) == (is_shown and is_within)
    if made.best is None and (more := made.rows[1].judgement.more_rows) is not None:
        assert more > 0


@pytest.mark.parametrize("rows", [20, 50, 100, 250, 298])
def test_few_rows_show_nothing_even_where_no_answer_changed_and_it_is_said_how_many_would(rows: int) -> None:
    made = found(form("compact", 2.0, rows=rows), rows=rows)
    assert made.best is None
    more = made.rows[1].judgement.more_rows
    assert more is not None
    assert found(form("compact", 2.0, rows=rows + more), rows=rows + more).best is not None
    assert f"on {rows} rows (+0.00 [+0.00, +0.00]): about {more} more held-out rows would show it." in made.sentence


def test_a_form_with_a_certificate_of_its_own_is_advised_unless_held_out_rows_speak_against_it() -> None:
    certified = form("onnx_int8", 5.0, lost=40, gained=10, p_value=0.01)
    made = found(certified, points=2.0)
    assert made.sentence.endswith("held-out accuracy 83.50 (before 85.00), certified within 2 points.")
    assert made.advice().certified
    assert best(form("onnx_int8", 5.0, lost=40, gained=10, p_value=0.2), points=2.0) is None
    assert best(form("onnx_int8", 5.0, lost=200, gained=10, p_value=0.01), points=2.0) is None


def test_a_speed_that_is_no_gain_or_could_not_be_measured_is_not_advised() -> None:
    def with_ends(low: float, high: float) -> dict[str, Any]:
        one = form("compact", 1.5)
        one["speed"][0]["times_interval"] = [low, high]
        return one

    assert best(with_ends(1.45, 1.55)) == "compact"
    assert best(with_ends(1.02, 1.6)) is None
    noisy = found(with_ends(0.9, 2.3))
    assert noisy.sentence == (
        "Keep your model: how fast PyTorch is could not be measured here; try axformer bench on a quiet machine."
    )
    assert noisy.table().rows[1][5] == "? [0.9, 2.3]"


def test_the_untouched_model_is_never_faster_than_itself_and_its_int8_is_named_as_its_own() -> None:
    untouched = {"removed": [], "hard_attention": []}
    assert best(form("compact", 1.5), **untouched) is None
    made = found(form("compact", 1.5), form("onnx_int8", 4.4), **untouched)
    assert made.sentence == (
        "Deploy ONNX int8 of your own model: 4.4 times as fast [4.3, 4.5] with one input, held-out accuracy 85.00 "
        "(before 85.00). It lies in the result."
    )


def before_int8(times: float, lost: int = 0) -> dict[str, Any]:
    return form("onnx_int8", times, lost, directory=None)


def test_what_pruning_adds_is_told_and_the_cheapest_form_that_does_the_job_is_advised() -> None:
    worth_it = found(form("compact", 1.6), form("onnx_int8", 6.2), before_forms=[before_int8(4.4)])
    assert [row.title for row in worth_it.rows] == ["before", "before, ONNX int8", "PyTorch", "ONNX int8"]
    assert "Deploy hub/onnx/model_quantized.onnx (ONNX int8): 6.2 times as fast" in worth_it.sentence
    assert worth_it.sentence.endswith("Pruning makes it 1.41 times as fast as ONNX int8 of your own model.")
    assert worth_it.advice().by_pruning == pytest.approx(6.2 / 4.4)
    hardly = found(form("compact", 1.2), form("onnx_int8", 4.6), before_forms=[before_int8(4.4)])
    assert hardly.sentence.startswith("Deploy ONNX int8 of your own model (made by axformer int8): 4.4 times as fast")
    assert hardly.sentence.endswith("Pruning adds +5% to that, which is not worth it or not sure.")
    assert hardly.advice().of_untouched
    for times in (4.4, 4.38, 4.0):
        no_faster = found(form("compact", 1.2), form("onnx_int8", times), before_forms=[before_int8(4.4)])
        assert no_faster.sentence.endswith("Pruning does not make that faster.")
    lost = found(form("onnx_int8", 9.0, lost=500), before_forms=[before_int8(4.4)])
    assert "The pruned one lost more than 1 point of held-out accuracy (-25.00 " in lost.sentence


def test_a_class_that_loses_by_more_than_chance_is_named() -> None:
    one = form("compact", 2.0)
    one["cost"]["classes"] = [{"name": "rare", "count": 40, "before": 0.9, "after": 0.4, "p_value": 0.001}]
    assert found(one).sentence.endswith("The class 'rare' loses: 90.0% of its 40 were found before, 40.0% are now.")
    one["cost"]["classes"][0]["p_value"] = 0.2
    assert "rare" not in found(one).sentence


def test_a_busy_machine_is_told_with_the_form_to_deploy() -> None:
    for share, is_busy in ((None, False), (0.97, False), (0.42, True)):
        one = form("compact", 2.0)
        one["speed"][0]["processor_share"] = share
        assert ("had a processor for 42% of the time" in found(one).sentence) is is_busy


def test_the_first_metric_is_the_tasks_own_in_whatever_order_a_database_gives_them() -> None:
    shuffled = report(form("compact", 2.0))
    for one in (shuffled["base_form"], *shuffled["forms"]):
        one["test"] = {"f1": 0.5, "loss": 0.3, "accuracy": 0.84}
    made = deployables(shuffled)
    assert made is not None
    assert made.metric == "accuracy"


def test_without_rows_that_did_not_decide_nothing_is_shown() -> None:
    content = report(form("compact", 2.0))
    content["judged"] |= {"data": None, "rows": 0}
    for one in (content["base_form"], *content["forms"]):
        del one["test"]
    made = deployables(content)
    assert made is not None
    assert (made.data, made.best) == ("validation", None)
    assert made.sentence.endswith("no rows show what it costs; give held-out data (--test).")


def test_a_metric_that_is_no_share_is_judged_in_percent_and_less_of_it_is_better() -> None:
    content = report(form("compact", 2.0), form("onnx", 3.0), points=5.0)
    content["judged"] |= {"guess": None, "is_share": False}
    for one, value in zip((content["base_form"], *content["forms"]), (12.0, 11.0, 13.0), strict=True):
        one["test"] = {"loss": 2.0, "perplexity": value}
        one["cost"] = {"differences": {"perplexity": {"value": value - 12, "interval": [value - 12.1, value - 11.9]}}}
    made = deployables(content)
    assert made is not None
    assert made.table().rows[1][1:3] == ["11.0000", "-1.0000 [-1.1000, -0.9000]"]
    assert [row.judgement.standing for row in made.rows[1:]] == [Standing.SHOWN, Standing.WORSE]


@pytest.mark.parametrize(("data", "metric"), [("test", "ndcg_10"), ("unlabelled", "same_nearest")])
def test_an_embedder_is_judged_by_what_held_out_pairs_find_and_else_by_its_answers(data: str, metric: str) -> None:
    content = report(form("compact", 2.0), points=5.0)
    content["judged"] |= {"guess": None, "is_share": metric == "same_nearest", "data": data}
    changes = {"ndcg_10": (-0.02, -0.03, -0.01), "same_nearest": (-0.3, -0.32, -0.28)}
    for one in (content["base_form"], *content["forms"]):
        one[data] = {"loss": 0.1, "same_nearest": 0.7, "ndcg_10": 0.76}
        one["cost"] = {
            "differences": {name: {"value": value, "interval": ends} for name, (value, *ends) in changes.items()},
            "mcnemar": {"gained": 0, "lost": 600},
        }
    made = deployables(content)
    assert made is not None
    assert made.metric == metric
    assert made.rows[1].judgement.standing is (Standing.SHOWN if data == "test" else Standing.WORSE)
    found_pairs = "held-out nDCG@10 76.00 (before 76.00)"
    assert (found_pairs in made.sentence) is (data == "test")


@pytest.mark.parametrize("data", ["test", "unlabelled"])
@pytest.mark.parametrize("p_value", [0.01, 0.2, None])
def test_labels_say_more_of_changed_answers_than_that_they_changed(data: str, p_value: float | None) -> None:
    content = report(form("compact", 2.0, lost=60, p_value=p_value))
    content["judged"] |= {"data": data}
    for one in (content["base_form"], *content["forms"]):
        one[data] = one.pop("test")
    made = deployables(content)
    assert made is not None
    is_certified = data == "unlabelled" and p_value == 0.01
    judgement = made.rows[1].judgement
    assert (judgement.standing is Standing.WORSE, judgement.is_certified) == (not is_certified, is_certified)
    assert (made.best is made.rows[1]) == is_certified
    assert ("certified within 1 point" in made.sentence) == is_certified


def test_what_a_report_of_an_earlier_version_lacks_is_unknown() -> None:
    assert deployables({"base": {}}) is None
    bare = {"name": "compact", "made": True}
    made = deployables({"base_form": {"name": "base", "made": True}, "forms": [bare, {"name": "onnx", "made": False}]})
    assert made is not None
    assert made.table().rows == [
        ["before", UNKNOWN, "", "", UNKNOWN, "", UNKNOWN, UNKNOWN],
        ["PyTorch", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN],
    ]


def test_a_report_of_an_earlier_version_is_judged_by_its_interval() -> None:
    content = report(form("compact", 2.0, lost=3), form("onnx_int8", 4.0, lost=300))
    del content["judged"]
    for one in content["forms"]:
        one["test_change"] = one.pop("cost")
        del one["speed"][0]["times"], one["speed"][0]["times_interval"]
    made = deployables(content)
    assert made is not None
    assert made.best is not None
    assert made.best.name == "compact"


@pytest.mark.parametrize(("times", "name"), [(1.96, "stock"), (1.67, "compact"), (1.1, "compact")])
def test_a_form_that_needs_nothing_installed_is_advised_where_it_is_about_as_fast(times: float, name: str) -> None:
    assert best(form("stock", times), form("compact", 2.0)) == name
