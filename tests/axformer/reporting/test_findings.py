"""What is said of a finished model is what its intervals say, on the data that had no part in its making."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from axformer.reporting.findings import finding_of
from axformer.wire.report import Comparison, Difference, Scores
from axformer.wire.verdicts import FindingVerdict, McNemarTest

VALIDATION = {"loss": 0.5}
CHANGES = st.tuples(st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1))


def scores(**others: float) -> Scores:
    """Of a model with these losses, by the name of the data."""
    figures: dict[str, dict[str, float] | None] = {"test": None}
    figures |= {name: {"loss": loss} for name, loss in others.items()}
    intervals = {f"{name}_intervals": None if one is None else {"loss": (0.0, 2.0)} for name, one in figures.items()}
    return Scores.model_validate(
        {"validation": VALIDATION, "validation_intervals": {"loss": (0.4, 0.6)}, **figures, **intervals}
    )


def changed(value: float, low: float, high: float, test: McNemarTest | None = None) -> Comparison:
    return Comparison(differences={"loss": Difference(value=value, interval=(low, high))}, mcnemar=test)


@given(CHANGES)
def test_a_gain_is_one_whose_interval_lies_below_nothing(change: tuple[float, float, float]) -> None:
    value, below, above = change
    low, high = value - below, value + above
    finding = finding_of(
        "classification", scores(test=1.0), scores(test=1.0 + value), {"test": changed(value, low, high)}
    )
    assert finding.data == "test"
    if max(abs(low), abs(high)) <= 1e-5:
        assert finding.verdict is FindingVerdict.NO_RELIABLE_GAIN
        assert finding.sentence == "No reliable difference: on held-out data the loss is what it was, 1.0000."
        assert finding.advice.startswith("To remove more")
        return
    if high < 0:
        assert (finding.verdict, finding.sentence[:7]) == (FindingVerdict.GAIN, "Better:")
    elif low > 0:
        assert (finding.verdict, finding.sentence[:6]) == (FindingVerdict.LOSS, "Worse:")
    else:
        assert finding.verdict is FindingVerdict.NO_RELIABLE_GAIN
        assert finding.sentence.startswith("No reliable difference: on held-out data")
    assert f"between {low:+.4f} and {high:+.4f}" in finding.sentence


@pytest.mark.parametrize(("low", "high"), [(-0.01, 0.02), (0.001, 0.01), (-0.02, -0.001)])
def test_a_loss_that_falls_by_doubt_alone_is_no_gain(low: float, high: float) -> None:
    own = Difference(value=(low + high) / 2, interval=(low, high))
    comparison = changed(-0.08, -0.11, -0.05).model_copy(update={"tempered": own})
    finding = finding_of("classification", scores(test=0.65), scores(test=0.57), {"test": comparison})
    if high < 0:
        assert (finding.verdict, finding.sentence[:7]) == (FindingVerdict.GAIN, "Better:")
        assert "doubt" not in finding.sentence
    else:
        assert finding.verdict is FindingVerdict.NO_RELIABLE_GAIN
        assert finding.sentence.endswith(
            f"It fell by doubt: at each model's own best temperature the change is between {low:+.4f} and {high:+.4f}."
        )


@pytest.mark.parametrize("options", [{}, {"points": 2.0}, {"expects_cost": True}])
def test_a_constant_answer_is_of_no_use_however_much_the_loss_fell(options: dict[str, Any]) -> None:
    both = scores(test=0.7138), scores(test=0.689)
    finding = finding_of(
        "classification", *both, {"test": changed(-0.0248, -0.0354, -0.0136)}, is_constant=True, **options
    )
    assert finding.verdict is FindingVerdict.LOSS
    assert finding.sentence.startswith(
        "Of no use: every validation row gets the same answer now. On held-out data the loss was"
    )


def test_the_same_model_is_no_worse_by_the_rounding_of_its_loss() -> None:
    before, after = 0.33260, 0.33260 + 8e-8
    finding = finding_of(
        "classification", scores(test=before), scores(test=after), {"test": changed(8e-8, 7e-9, 1.4e-7)}
    )
    assert finding.verdict is FindingVerdict.NO_RELIABLE_GAIN
    assert finding.sentence == "No reliable difference: on held-out data the loss is what it was, 0.3326."
    assert "take a preset without a safeguard" in finding.advice


def test_where_points_were_allowed_and_nothing_changed_the_advice_is_more_points_or_more_rows() -> None:
    finding = finding_of(
        "classification", scores(test=0.5), scores(test=0.5), {"test": changed(0.0, 0.0, 0.0)}, points=1.0
    )
    assert finding.advice == "To remove more, allow more points, or give more rows to confirm on."


def test_held_out_data_speaks_before_the_rows_that_confirmed() -> None:
    both = {"test": changed(-0.1, -0.2, -0.05), "confirming": changed(0.1, 0.05, 0.2)}
    finding = finding_of("classification", scores(test=1.0, confirming=1.0), scores(test=0.9, confirming=1.1), both)
    assert (finding.data, finding.verdict) == ("test", FindingVerdict.GAIN)


def test_rows_that_confirmed_speak_where_nothing_was_held_out_and_say_that_they_chose() -> None:
    comparison = {"test": None, "confirming": changed(-0.1, -0.2, 0.05)}
    finding = finding_of("classification", scores(confirming=1.0), scores(confirming=0.9), comparison)
    assert (finding.data, finding.verdict) == ("confirming", FindingVerdict.NO_RELIABLE_GAIN)
    assert "on the rows that confirmed the loss fell from 1.0000 to 0.9000" in finding.sentence
    assert "a little optimistic" in finding.advice


def test_without_either_nothing_was_measured_and_the_figures_are_optimistic() -> None:
    finding = finding_of("classification", scores(), scores(), {"test": None})
    assert (finding.data, finding.verdict) == (None, FindingVerdict.NOT_MEASURED)
    assert "figures are optimistic" in finding.sentence
    assert finding.advice == "Measure the model on data that the run has not seen (--test)."


@pytest.mark.parametrize(
    ("test", "words"),
    [
        (
            McNemarTest(gained=9, lost=8, p_value=1.0),
            "9 became right and 8 became wrong: no more than chance explains (p = 1",
        ),
        (McNemarTest(gained=30, lost=5, p_value=2e-5), "better by more than chance (p = 2e-05"),
        (McNemarTest(gained=5, lost=30, p_value=2e-5), "worse by more than chance"),
        (McNemarTest(gained=0, lost=0, p_value=1.0), "No answer on held-out data changed"),
    ],
)
def test_answers_are_counted_with_their_p_value(test: McNemarTest, words: str) -> None:
    finding = finding_of("classification", scores(test=1.0), scores(test=0.9), {"test": changed(-0.1, -0.2, 0.1, test)})
    assert words in finding.answers


@given(CHANGES, st.integers(0, 40), st.integers(0, 40))
def test_a_model_whose_answers_became_worse_is_never_called_better(
    change: tuple[float, float, float], gained: int, lost: int
) -> None:
    value, below, above = change
    p_value = float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    is_worse = lost > gained and p_value <= 0.05
    test = McNemarTest(gained=gained, lost=lost, p_value=p_value)
    of_loss, of_both = (
        finding_of(
            "classification",
            scores(test=1.0),
            scores(test=1.0 + value),
            {"test": changed(value, value - below, value + above, found)},
        )
        for found in (None, test)
    )
    assert of_both.verdict is (FindingVerdict.LOSS if is_worse else of_loss.verdict)
    assert ("the model is worse by more than chance" in of_both.answers) is is_worse


@given(CHANGES, CHANGES, st.sampled_from(["pearson", "accuracy", "perplexity"]), st.booleans())
def test_a_metric_that_fell_reliably_speaks_where_it_is_no_share_of_right_answers(
    of_loss: tuple[float, float, float], of_metric: tuple[float, float, float], metric: str, knows_right: bool
) -> None:
    (loss, other), no_change = (
        (
            Difference(value=value, interval=(value - below, value + above))
            for value, below, above in (of_loss, of_metric)
        ),
        McNemarTest(gained=3, lost=4, p_value=1.0),
    )
    comparison = Comparison(differences={"loss": loss, metric: other}, mcnemar=no_change if knows_right else None)
    before = scores(test=1.0)
    by_loss, by_both = (
        finding_of(task, before, before, {"test": comparison}) for task in ("classification", "token_classification")
    )
    is_worse = other.interval[0] > 0 if metric == "perplexity" else other.interval[1] < 0
    assert by_both.verdict is (FindingVerdict.LOSS if is_worse else by_loss.verdict)
    assert ("by more than chance: with 95% confidence" in by_both.answers) is is_worse


def test_a_loss_that_fell_with_the_metric_is_no_gain() -> None:
    differences = {
        "loss": Difference(value=-0.15, interval=(-0.2, -0.1)),
        "pearson": Difference(value=-0.03, interval=(-0.05, -0.02)),
        "spearman": Difference(value=0.03, interval=(0.02, 0.05)),
    }
    finding = finding_of(
        "regression", scores(test=1.0), scores(test=0.85), {"test": Comparison(differences=differences, mcnemar=None)}
    )
    assert finding.verdict is FindingVerdict.LOSS
    assert finding.sentence.startswith("Worse answers: on held-out data the loss fell from 1.0000 to 0.8500")
    assert finding.answers == (
        "The pearson on held-out data fell by more than chance: with 95% confidence the change is between -0.0500 and -0.0200."
    )


def test_answers_that_became_worse_stand_first_where_the_loss_does_not_say_so() -> None:
    test = McNemarTest(gained=8, lost=21, p_value=0.024)
    finding = finding_of(
        "classification", scores(test=0.45), scores(test=0.46), {"test": changed(0.01, -0.01, 0.03, test)}
    )
    assert finding.sentence.startswith("Worse answers: on held-out data the loss did not fall")
    assert finding.advice == "Compare it with the untouched model before you use it."
    assert "8 became right and 21 became wrong" in finding.answers


@pytest.mark.parametrize(
    ("fall", "verdict", "begins"),
    [
        (
            0.8,
            FindingVerdict.WITHIN_LIMIT,
            "Within your limit: on held-out data the accuracy fell by 0.80 points, and you allowed 1.",
        ),
        (
            -0.2,
            FindingVerdict.WITHIN_LIMIT,
            "Within your limit: on held-out data the accuracy did not fall, and you allowed 1.",
        ),
        (1.2, FindingVerdict.LOSS, "Worse: on held-out data the loss did not fall"),
    ],
)
def test_what_was_allowed_is_within_the_limit_as_far_as_the_metric_kept_it(
    fall: float, verdict: FindingVerdict, begins: str
) -> None:
    differences = {
        "loss": Difference(value=0.05, interval=(0.02, 0.08)),
        "accuracy": Difference(value=-fall / 100, interval=(-0.03, 0.01)),
    }
    comparison = {"test": Comparison(differences=differences, mcnemar=None)}
    finding = finding_of("classification", scores(test=0.3), scores(test=0.35), comparison, points=1.0)
    assert finding.verdict is verdict
    assert finding.sentence.startswith(begins)


def test_a_fall_of_exactly_what_was_allowed_is_within_the_limit() -> None:
    """As a difference of two floats, 0.85 less 0.9 is a little below -0.05."""
    differences = {
        "loss": Difference(value=0.05, interval=(0.02, 0.08)),
        "accuracy": Difference(value=0.85 - 0.9, interval=(-0.1, -0.01)),
    }
    comparison = {"test": Comparison(differences=differences, mcnemar=None)}
    finding = finding_of("classification", scores(test=0.3), scores(test=0.35), comparison, points=5.0)
    assert finding.verdict is FindingVerdict.WITHIN_LIMIT


def test_a_limit_makes_no_gain_smaller() -> None:
    comparison = {"test": changed(-0.1, -0.2, -0.05)}
    finding = finding_of("classification", scores(test=1.0), scores(test=0.9), comparison, points=1.0)
    assert finding.verdict is FindingVerdict.GAIN


@pytest.mark.parametrize("value", [-0.0073, 0.002])
def test_a_size_or_a_speed_is_judged_by_what_it_cost(value: float) -> None:
    differences = {
        "loss": Difference(value=0.0136, interval=(0.0065, 0.0208)),
        "accuracy": Difference(value=value, interval=(-0.0193, 0.0033)),
    }
    comparison = {"test": Comparison(differences=differences, mcnemar=None)}
    finding = finding_of("classification", scores(test=0.3559), scores(test=0.3695), comparison, expects_cost=True)
    assert finding.verdict is FindingVerdict.AT_A_COST
    assert finding.advice == ""
    assert finding.sentence == (
        f"What it cost: on held-out data the accuracy changed by {100 * value:+.2f} points (between -1.93 and +0.33 with 95% "
        "confidence), and the loss by +0.0136."
    )


def test_an_embedders_held_out_pairs_tell_what_it_cost_and_no_text_is_called_wrong() -> None:
    differences = {
        "loss": Difference(value=0.1062, interval=(0.1044, 0.1078)),
        "same_nearest": Difference(value=-0.36, interval=(-0.39, -0.33)),
        "ndcg_10": Difference(value=-0.05, interval=(-0.066, -0.034)),
        "old_index_ndcg_10": Difference(value=-0.0247, interval=(-0.035, -0.013)),
    }
    comparison = {"test": Comparison(differences=differences, mcnemar=McNemarTest(gained=0, lost=1365, p_value=1e-9))}
    finding = finding_of("embedding", scores(test=0.0), scores(test=0.1062), comparison, expects_cost=True)
    assert finding.sentence.startswith("What it cost: on held-out data the nDCG@10 changed by -5.00 points")
    assert finding.answers == (
        "1,365 texts of held-out data find another one nearest than before. Where its queries search the vectors of your own "
        "model, nDCG@10 changes by -2.47 points. The nDCG@10 on held-out data fell by more than chance: with 95% "
        "confidence the change is between -0.0660 and -0.0340."
    )
