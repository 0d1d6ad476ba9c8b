"""Goals: the words of a wish, and the knobs that go for it."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.config import CompressConfig, LayersConfig, PassConfig, Preset, make_config
from axformer.config.goals import ABOUT_GOALS, GoalName, config_for, parse_goal
from axformer.errors import ConfigError


def test_every_goal_is_described_and_gives_a_config() -> None:
    assert set(ABOUT_GOALS) == set(GoalName)
    preset, safe = config_for(parse_goal("no-worse"))
    assert isinstance(safe, PassConfig)
    assert (preset, safe.safeguard) == (Preset.ROBUST, 5)
    preset, paper = config_for(parse_goal("as-paper"))
    assert (preset, paper) == (Preset.PAPER, PassConfig())
    _, small = config_for(parse_goal("within-points=2"))
    assert isinstance(small, CompressConfig)
    assert (small.within_points, small.confirm) == (2.0, CompressConfig().confirm)
    preset, shallow = config_for(parse_goal("fewer-layers=2"))
    assert isinstance(shallow, LayersConfig)
    assert (preset, shallow.within_points, shallow.about.finetune_defaults["epochs"]) == (Preset.PAPER, 2.0, 3)
    _, open_points = config_for(parse_goal("within-points"))
    assert open_points.within_points == "rows"
    assert config_for(parse_goal("fewer-layers")) == config_for(parse_goal("fewer-layers=1"))


@given(st.floats(min_value=1.05, max_value=20.0), st.sampled_from(["speedup", "operations"]))
def test_a_speed_up_cuts_step_by_step_to_what_reaches_it_and_chooses_nothing_afterwards(
    times: float, word: str
) -> None:
    _, config = config_for(parse_goal(f"{word}={times:g}"))
    assert isinstance(config, CompressConfig)
    assert config.asks_for_time == (word == "speedup")
    assert (config.within_points, config.confirm) == (None, 0.0)
    assert config.target_speedup == pytest.approx(times, rel=1e-4)
    assert config.budgets[0] > 1 / times > config.budgets[1]


@pytest.mark.parametrize("target", [{"target_speedup": 2.0}, {"target_size": 0.5}])
def test_a_named_target_is_not_held_back_by_points_that_nobody_named(target: dict[str, float]) -> None:
    config = make_config("smallest", target)
    assert (config.within_points, config.confirm) == (None, 0.0)
    named = make_config("smallest", target | {"within_points": 2.0})
    assert (named.within_points, named.confirm) == (2.0, 0.4)


def test_knobs_beside_a_goal_change_it() -> None:
    _, config = config_for(parse_goal("within-points=1"), {"table_rows": 64})
    assert isinstance(config, CompressConfig)
    assert (config.table_rows, config.within_points) == (64, 1.0)


@pytest.mark.parametrize(
    ("goal", "knobs", "confirms", "with_rows_to_calibrate"),
    [
        ("within-points=1", {}, 0.4, 0.8),
        ("within-points=1", {"confirm": 0.3}, 0.3, 0.3),
        ("within-points=1", {"within_points": None}, 0.4, 0.4),
        ("speedup=2", {}, 0.0, 0.0),
    ],
)
def test_more_rows_confirm_where_others_calibrate(
    goal: str, knobs: dict[str, Any], confirms: float, with_rows_to_calibrate: float
) -> None:
    _, config = config_for(parse_goal(goal), knobs)
    assert (config.confirm, config.calibrated().confirm) == (confirms, with_rows_to_calibrate)
    assert make_config("smallest", config.calibrated().model_dump()).calibrated() == config.calibrated(), (
        "it is settled"
    )


@given(st.floats(0, 100, exclude_min=True, exclude_max=True))
def test_every_number_within_its_range_makes_a_config(number: float) -> None:
    for name in GoalName:
        if ABOUT_GOALS[name].number is not None and (number > 1 or name not in (GoalName.SPEEDUP, GoalName.OPERATIONS)):
            config_for(parse_goal(f"{name}={number!r}"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "fast",
            "goal 'fast' is unknown; there are no-worse, within-points=1, same-answers=98, speedup=2, operations=2, "
            "fewer-layers=1, as-paper",
        ),
        ("no_worse", "goal 'no_worse' is unknown; did you mean no-worse?"),
        ("within-point=1", "goal 'within-point=1' is unknown; did you mean within-points?"),
        ("no-worse=1", "no-worse takes no number"),
        ("speedup", "goal 'speedup' needs a number: times as fast; write for example speedup=2"),
        ("speedup=fast", "needs a number"),
        ("speedup=1", "must lie above 1"),
        ("speedup=inf", "must lie above 1 and below 100"),
        ("operations=1e9", "goal 'operations=1e9': times fewer operations must lie above 1 and below 100"),
        ("speedup=100", "must lie above 1 and below 100"),
        ("within-points=nan", "must lie above 0 and below 100"),
        ("within-points=0", "must lie above 0 and below 100"),
    ],
)
def test_what_is_not_a_goal_is_refused_with_the_goals_there_are(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(reason)):
        parse_goal(text)
