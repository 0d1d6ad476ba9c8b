"""The chart of a pass shows every trial once, where its loss belongs, in the form of its verdict."""

import math
import random
from collections import Counter
from xml.etree import ElementTree

import pytest

from axformer.drawing.chart import TrialCounts, describe_trace, loss_chart
from axformer.drawing.scale import Scale, labels
from axformer.drawing.sheet import SHEET
from axformer.drawing.svg import NARROW, WIDE, inline
from axformer.errors import InputError
from axformer.plan.trial import Phase, Trial, Verdict

SVG = "{http://www.w3.org/2000/svg}"
FORMS = ("accept", "refine", "reject", "bound")


def some_trace(seed: int, trials: int = 60) -> list[Trial]:
    """A pass in which every verdict and both kinds of loss occur, also losses far away and ones that are no number."""
    chance, least = random.Random(seed), 0.6
    trace = [some_trial(0, None, 0.6, 0.6, Verdict.BASE)]
    for seq in range(1, trials):
        verdict = chance.choice([Verdict.ACCEPT, Verdict.REFINE, Verdict.REJECT, Verdict.REJECT])
        factor = {Verdict.ACCEPT: 0.99, Verdict.REFINE: 1.05}.get(verdict, chance.choice([0.5, 1.02, 9, math.inf]))
        is_bound = verdict is Verdict.REJECT and chance.random() < 0.5
        element = f"layer.{chance.randrange(4)}.attention.head.{seq}"
        trace.append(some_trial(seq, element, least * factor, least, verdict, is_bound=is_bound))
        least = min(least, trace[-1].loss) if verdict is Verdict.ACCEPT else least
    return trace


def some_trial(
    seq: int, element: str | None, loss: float, least: float, verdict: Verdict, *, is_bound: bool = False
) -> Trial:
    return Trial(
        seq=seq,
        phase=Phase.BASE if element is None else Phase.HEAD,
        element=element,
        loss=loss,
        loss_is_bound=is_bound,
        helped=None if element is None else 4,
        samples=8,
        total=10,
        min_loss=least,
        verdict=verdict,
        precision="float32",
        parameters=100,
        seconds=float(seq),
    )


def marks_of(text: str) -> dict[str, list[ElementTree.Element]]:
    """The marks of trials by form, those of the legend left out: they have no tooltip."""
    paths = ElementTree.fromstring(text).iter(f"{SVG}path")
    marks: dict[str, list[ElementTree.Element]] = {form: [] for form in FORMS}
    for path in paths:
        if path.attrib["class"] in FORMS and path.find(f"{SVG}title") is not None:
            marks[path.attrib["class"]].append(path)
    return marks


@pytest.mark.parametrize("seed", range(10))
def test_every_trial_is_drawn_in_the_form_of_its_verdict(seed: int) -> None:
    trace = some_trace(seed)
    counts = Counter("bound" if trial.loss_is_bound else trial.verdict.value for trial in trace[1:])
    marks = marks_of(loss_chart(trace))
    both = {"accept": 2}  # accepted ones are in the lower plot too
    assert {form: len(found) for form, found in marks.items()} == {
        form: counts[form] * both.get(form, 1) for form in FORMS
    }


@pytest.mark.parametrize("width", [NARROW, 766, WIDE])
@pytest.mark.parametrize("seed", range(10))
def test_higher_losses_stand_higher_and_all_stand_within(seed: int, width: int) -> None:
    trace = some_trace(seed)
    by_seq = {trial.seq: trial for trial in trace}
    text = loss_chart(trace, width=width)
    height = float(ElementTree.fromstring(text).attrib["height"])
    for form in ("refine", "reject", "bound"):
        places = []
        for path in marks_of(text)[form]:
            x, y = map(float, path.attrib["d"][1:].split("m")[0].split())
            assert 66 <= x <= width - 20
            assert 50 <= y <= height - 200
            told = path.findtext(f"{SVG}title")
            assert told is not None
            trial = by_seq[int(told.split(":")[0])]
            assert str(trial.element) in told
            places.append((trial.loss, y))
        assert [y for _, y in sorted(places)] == sorted((y for _, y in places), reverse=True)
        assert len({y for loss, y in places if loss > 1.5 * trace[0].loss}) <= 1, (
            "what is far away stands in the gutter"
        )


def test_what_was_rejected_early_stands_in_a_band_above_everything_that_was_measured() -> None:
    text = loss_chart(some_trace(3))
    heights = {
        form: {float(path.attrib["d"][1:].split("m")[0].split()[1]) for path in marks_of(text)[form]}
        for form in ("bound", "refine", "reject")
    }
    (band,) = heights.pop("bound")
    assert all(height > band for others in heights.values() for height in others)


def test_what_follows_the_kept_trial_is_veiled_where_later_ones_were_accepted() -> None:
    trace = some_trace(3)
    accepted = [trial.seq for trial in trace if trial.verdict is Verdict.ACCEPT]
    for kept, is_veiled in ((None, False), (accepted[0], True), (accepted[-1], False)):
        text = loss_chart(trace, kept=kept)
        assert ('class="veil"' in text) is is_veiled
        assert (f"kept: trial {kept}<" in text) is is_veiled


def test_without_some_rejected_trials_the_counts_are_those_of_all_and_what_is_accepted_stands_where_it_did() -> None:
    trace = some_trace(3, trials=400)
    few = [trial for trial in trace if trial.verdict is not Verdict.REJECT or trial.seq % 3 == 0]
    whole, thinned = loss_chart(trace), loss_chart(few, TrialCounts.of(trace))
    assert describe_trace(trace) in whole
    assert f"{describe_trace(trace)}. {400 - len(few)} of the rejected ones are not drawn" in thinned
    across = ([one.attrib["d"].split()[0] for one in marks_of(text)["accept"]] for text in (whole, thinned))
    assert len({tuple(places) for places in across}) == 1


def assert_readable(text: str, name: str, summary: str) -> None:
    """A chart is told in words, and each of its shades is there for a light page and a dark one."""
    root = ElementTree.fromstring(text)
    named = {part.attrib["id"]: part.text for part in root.iter() if "id" in part.attrib}
    assert set(root.attrib["aria-labelledby"].split()) == set(named)
    assert named[f"{name}-summary"] == summary
    assert SHEET in text
    assert inline(text) == text.replace(f"<style>{SHEET}</style>\n", "")
    light, _, dark = SHEET.partition("@media screen and (prefers-color-scheme:dark)")
    shades = {part.attrib["class"].split()[0] for part in root.iter() if part is not root and "class" in part.attrib}
    assert all(f".{shade}{{" in light and f".{shade}{{" in dark for shade in shades)


def test_the_chart_is_told_in_words_and_has_a_light_and_a_dark_side() -> None:
    trace = some_trace(1)
    assert_readable(loss_chart(trace), "chart", describe_trace(trace))


def test_a_pass_that_has_only_begun_is_drawn_and_none_at_all_is_refused() -> None:
    ElementTree.fromstring(loss_chart(some_trace(0, trials=1)))
    zero = some_trial(0, None, 0.0, 0.0, Verdict.BASE)
    ElementTree.fromstring(loss_chart([zero]))
    with pytest.raises(InputError, match="holds no trial"):
        loss_chart([])


def test_a_long_pass_stays_small_and_keeps_the_tooltips_of_what_was_accepted() -> None:
    sizes = []
    for trials in (10_000, 40_000):
        text = loss_chart(some_trace(2, trials=trials))
        marks = marks_of(text)
        assert marks["accept"]
        sizes.append(len(text))
    assert sizes[1] < 1.6 * sizes[0] < 3_000_000


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 10, ["0", "2", "4", "6", "8", "10"]),
        (0.61, 0.64, ["0.61", "0.62", "0.63", "0.64"]),
        (-1, 1, ["-1.0", "-0.5", "0.0", "0.5", "1.0"]),
    ],
)
def test_ticks_are_round_and_told_apart(low: float, high: float, expected: list[str]) -> None:
    assert labels(Scale(low, high, 0, 100).ticks(5)) == expected
