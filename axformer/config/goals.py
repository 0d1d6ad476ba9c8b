"""What a person wishes, and the preset and knobs that go for it.

A goal is written as one word, or as a word with a number: ``no-worse``, ``within-points=1``,
``same-answers=98``, ``speedup=2``, ``operations=2``, ``fewer-layers=1``, ``as-paper``. Commands, service, pages and documents
use the same words. Knobs that are given beside a goal change it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from axformer.config import Preset, RunConfig, make_config
from axformer.config.common import BY_ROWS
from axformer.config.nearest import suggestion
from axformer.errors import ConfigError

_BELOW = (0.99, 0.95, 0.9)
"""Budgets tried for a speed-up, as shares of the encoder's cost that would reach it if nothing lay outside the encoder. The
first that reaches it ends the run; where much lies outside, as a vocabulary does, the method works out one more."""
_MOST = 100.0
"""No number of a goal reaches this: all points of a metric, and budgets of one in a hundred."""


class GoalName(StrEnum):
    """The kinds of goals."""

    NO_WORSE = "no-worse"
    WITHIN_POINTS = "within-points"
    SAME_ANSWERS = "same-answers"
    SPEEDUP = "speedup"
    OPERATIONS = "operations"
    FEWER_LAYERS = "fewer-layers"
    AS_PAPER = "as-paper"


@dataclass(frozen=True)
class AboutGoal:
    """A kind of goal, for people."""

    title: str
    does: str
    """What is done, what comes out and when it does not help."""
    number: str | None = None
    """What the number means; None if the goal has none."""
    usual: float | None = None
    """The number if none is given; None if one must be given, the rows decide, or the goal has none."""
    is_open: bool = False
    """Whether the rows decide where no number is given."""


ABOUT_GOALS: dict[GoalName, AboutGoal] = {
    GoalName.NO_WORSE: AboutGoal(
        "No worse, perhaps better",
        "Prunes by accuracy: a part goes only if the loss falls, most rows are helped, and every part of the data gains. It "
        "removes little, and often nothing.",
    ),
    GoalName.WITHIN_POINTS: AboutGoal(
        "As small and fast as N points allow",
        "Compresses without training and keeps the smallest model that is certified, on rows that did not decide, to have lost "
        "less than N points of its metric: without a number, as few as your rows are likely to certify.",
        "points of the metric that may be lost",
        is_open=True,
    ),
    GoalName.SAME_ANSWERS: AboutGoal(
        "The same answers on N % of inputs",
        "The same on rows without labels: keeps the smallest model that is certified to answer at least N % of the "
        "inputs as before.",
        "per cent of the inputs that are answered as before",
        98.0,
    ),
    GoalName.SPEEDUP: AboutGoal(
        "At least X times as fast",
        "Compresses without training until the model takes X times less time on this machine, measures the result, and reports "
        "what that cost: give held-out data to see it.",
        "times as fast",
    ),
    GoalName.OPERATIONS: AboutGoal(
        "At least X times fewer operations",
        "The same, by operations instead of time: the result is the same on every machine.",
        "times fewer operations",
    ),
    GoalName.FEWER_LAYERS: AboutGoal(
        "Fewer layers, trained again",
        "Drops layers from the top and trains what is left on your training data, one layer more each time, and keeps the "
        "smallest model that is certified to have lost less than N points. The result is an ordinary checkpoint of its family. "
        "It takes as long as the trainings do.",
        "points of the metric that may be lost",
        1.0,
    ),
    GoalName.AS_PAPER: AboutGoal("As the paper", "Algorithm 1 as the paper has it; gains may not hold on other data."),
}
"""What each goal does, for help texts, forms and documents."""


@dataclass(frozen=True)
class Goal:
    """A goal with its number."""

    name: GoalName
    number: float | None = None

    def __str__(self) -> str:
        return self.name.value if self.number is None else f"{self.name.value}={self.number:g}"

    @property
    def preset(self) -> Preset:
        """The preset that it starts from."""
        if self.name is GoalName.NO_WORSE:
            return Preset.ROBUST
        others = (GoalName.FEWER_LAYERS, GoalName.AS_PAPER)
        return Preset.PAPER if self.name in others else Preset.SMALLEST

    @property
    def knobs(self) -> dict[str, Any]:
        """The knobs that differ from the preset."""
        if self.name is GoalName.WITHIN_POINTS:
            return {"within_points": BY_ROWS if self.number is None else self.number}
        if self.name is GoalName.SAME_ANSWERS:
            assert self.number is not None, "it has a usual one"
            return {"within_points": round(100.0 - self.number, 6)}
        if self.name is GoalName.FEWER_LAYERS:
            return {"method": "layers", "within_points": self.number}
        if self.name in (GoalName.SPEEDUP, GoalName.OPERATIONS):
            assert self.number is not None, "it was checked"
            budgets = (self.number**-0.5, *(share / self.number for share in _BELOW))
            whole = {"budgets": tuple(min(round(budget, 4), 0.9999) for budget in budgets)}
            # Every row decides: compression looks at no label, and nothing is chosen afterwards.
            cost = "latency" if self.name is GoalName.SPEEDUP else "operations"
            return whole | {"target_speedup": self.number, "within_points": None, "confirm": 0.0, "cost": cost}
        return {}


def parse_goal(text: str) -> Goal:
    """Parse a goal.

    Raises:
        ConfigError: there is no such goal, or its number is missing, out of range or not wanted.
    """
    word, equals, figure = text.partition("=")
    if word not in list(GoalName):
        near = suggestion(word, list(GoalName)) or f"there are {', '.join(map(written, GoalName))}"
        raise ConfigError(f"goal '{text}' is unknown; {near}")
    name = GoalName(word)
    about = ABOUT_GOALS[name]
    if about.number is None:
        if equals:
            raise ConfigError(f"goal '{text}': {name.value} takes no number")
        return Goal(name)
    if not equals and (about.usual is not None or about.is_open):
        return Goal(name, about.usual)
    try:
        number = float(figure)
    except ValueError:
        raise ConfigError(f"goal '{text}' needs a number: {about.number}; write for example {written(name)}") from None
    is_times = name in (GoalName.SPEEDUP, GoalName.OPERATIONS)
    least = 1.0 if is_times else 0.0
    if not least < number < _MOST:
        raise ConfigError(f"goal '{text}': {about.number} must lie above {least:g} and below {_MOST:g}")
    return Goal(name, number)


def config_for(goal: Goal, knobs: Mapping[str, Any] | None = None) -> tuple[Preset, RunConfig]:
    """The preset and the config of a goal, with some knobs changed.

    Raises:
        ConfigError: as for :func:`axformer.config.make_config`.
    """
    return goal.preset, make_config(goal.preset, {**goal.knobs, **(knobs or {})})


def written(name: GoalName) -> str:
    """An example of a goal as it is written."""
    about = ABOUT_GOALS[name]
    if about.number is None:
        return name.value
    is_times = name in (GoalName.SPEEDUP, GoalName.OPERATIONS)
    return f"{name.value}={about.usual if name is GoalName.SAME_ANSWERS else 2 if is_times else 1:g}"
