"""What is said of targets that were reached, and of those that were nearly."""

import pytest

from axformer.config import make_config
from axformer.methods.targets import Targets
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan

FULL = Plan.full(Dimensions(layers=1, heads=2, hidden_size=4, intermediate_size=8))
SMALL = FULL.dropping([0])
WHOLE = 1_000_000


@pytest.mark.parametrize(
    ("knobs", "left", "told"),
    [
        (
            {"target_speedup": 2.0},
            500_500,
            "not reached: 50.0% of the parameters are left (50.0% of the encoder's), and 1.998 times",
        ),
        (
            {"target_speedup": 2.0},
            499_500,
            "was reached: 50.0% of the parameters are left (50.0% of the encoder's), and 2.00 times",
        ),
        (
            {"target_speedup": 3.0},
            500_500,
            "not reached: 50.0% of the parameters are left (50.0% of the encoder's), and 2.00 times",
        ),
        ({"target_size": 0.5}, 500_400, "not reached: 50.04% of the parameters"),
        ({"target_size": 0.5}, 499_600, "was reached: 50.0% of the parameters"),
    ],
)
def test_a_target_that_is_nearly_reached_does_not_read_as_reached(
    knobs: dict[str, float], left: int, told: str
) -> None:
    def count(plan: Plan) -> int:
        return left if plan == SMALL else WHOLE

    note = Targets(make_config("paper", knobs), FULL, count, count, count, count).note(SMALL)
    assert note is not None
    assert told in note
