"""What the demo says of a result."""

import pytest

from benchmarks.demo_result import held_out_verdict

BEFORE = {"loss": 0.4, "accuracy": 0.8, "matthews_correlation": 0.6}


def verdict(**after: float) -> str:
    return held_out_verdict({"base": {"test": BEFORE}, "pruned": {"test": BEFORE | after}})


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({"loss": 0.3}, "On held-out data: loss got better; accuracy, matthews correlation did not change."),
        ({"loss": 0.5}, "On held-out data: loss got worse; accuracy, matthews correlation did not change."),
        (
            {"loss": 0.3, "accuracy": 0.7, "matthews_correlation": 0.5},
            "On held-out data: loss got better; accuracy, matthews correlation got worse.",
        ),
        ({}, "On held-out data: loss, accuracy, matthews correlation did not change."),
    ],
)
def test_worse_held_out_figures_are_called_worse(after, said):
    assert verdict(**after) == said
