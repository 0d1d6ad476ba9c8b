"""A certificate with few labels never says what the full test would not, whatever is labelled, in any order."""

import random
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from axformer.errors import DataError
from axformer.scores.certificate import certify_sheet
from axformer.scores.labelling import (
    asked_words,
    label_of,
    most_labels,
    needed,
    p_value_of,
    standing_of,
    tally,
)
from axformer.scores.paired_tests import ALPHA, betting_p_value, exact_p_value
from axformer.scores.planning import fewest_rows, most_changed
from axformer.tasks.tag_schemes import chunks_of
from axformer.wire.answer_sheet import AnswerSheet, ChangedRow, PathAnswers

CLASSES = ["bad", "fair", "good"]


def sheet_of(
    rows: int, before: list[int], models: list[list[int]], points: float, form: str = "compact"
) -> AnswerSheet:
    """A sheet of a path's answers to the first rows; the others did not change."""
    changed = [place for place in range(len(before)) if any(model[place] != before[place] for model in models)]
    return AnswerSheet(
        task="classification",
        metric="accuracy",
        test="exact",
        classes=CLASSES,
        points=points,
        rows=rows,
        unlabelled=rows,
        changed=[
            ChangedRow(id=f"row{place}", place=place, inputs={"text": "x"}, before=before[place]) for place in changed
        ],
        models=[
            PathAnswers(
                seq=number,
                form=form,
                times=1.0 + number,
                answers={place: model[place] for place in changed if model[place] != before[place]},
            )
            for number, model in enumerate(models, 1)
        ],
    )


@st.composite
def paths(draw: st.DrawFn) -> tuple[AnswerSheet, dict[str, int]]:
    """A path of three models on 20 to 5,000 rows, and the truth about every changed row."""
    rows = draw(st.sampled_from([20, 60, 150, 400, 1000, 5000]))
    count = draw(st.integers(0, min(rows, 40)))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    before = rng.integers(3, size=count).tolist()
    models, last = [], list(before)
    for _ in range(3):
        last = [int(rng.integers(3)) if rng.random() < 0.3 else answer for answer in last]
        models.append(last)
    sheet = sheet_of(rows, before, models, draw(st.sampled_from([0.5, 1.0, 2.0, 5.0, 20.0])))
    lean = draw(st.sampled_from([0.0, 0.5, 0.9]))
    truth = {
        row.id: row.before if rng.random() < lean else int(rng.integers(3))
        for row in sheet.changed
        if not isinstance(row.before, list)
    }
    return sheet, truth


@given(paths(), st.integers(0, 1000))
@settings(deadline=None, max_examples=60)
def test_labels_in_any_order_only_ever_lower_the_p_value_down_to_that_of_the_full_test(
    path: tuple[AnswerSheet, dict[str, int]], seed: int
) -> None:
    sheet, truth = path
    ids = list(truth)
    random.Random(seed).shuffle(ids)
    known: dict[str, int] = {}
    margin = sheet.points / 100
    last = {model.seq: (1.0, 0) for model in sheet.models}
    for id in [None, *ids]:
        if id is not None:
            known[id] = truth[id]
        for model in sheet.models:
            worst = p_value_of(sheet, model, known, margin)
            assert worst <= last[model.seq][0] + 1e-12
            last[model.seq] = worst, 0
        passed = standing_of(sheet, "compact", known).passed
        assert passed <= standing_of(sheet, "compact", truth).passed
    for model in sheet.models:
        full = tally(sheet, model, truth)
        assert full.unlabelled == 0
        assert last[model.seq][0] == exact_p_value(full.gained, full.lost, sheet.rows, margin)


@given(paths())
@settings(deadline=None, max_examples=60)
def test_asking_as_told_ends_where_all_labels_end_with_no_label_too_many(
    path: tuple[AnswerSheet, dict[str, int]],
) -> None:
    sheet, truth = path
    known: dict[str, int] = {}
    most = most_labels(sheet, "compact", known)
    while rows := needed(sheet, known):
        known[rows[0].id] = truth[rows[0].id]
    assert standing_of(sheet, "compact", known).passed == standing_of(sheet, "compact", truth).passed
    assert len(known) <= (most[-1][1] if most else 0)
    certificate = certify_sheet(sheet, "compact", known)
    assert (certificate.p_value is None) == (certificate.kept == 0)
    assert certificate.unlabelled == sheet.rows - len(known)


FORM_PATHS = st.lists(st.lists(st.integers(0, 2), min_size=30, max_size=30), min_size=1, max_size=3)


@given(FORM_PATHS, FORM_PATHS, st.lists(st.integers(0, 2), min_size=30, max_size=30), st.sets(st.integers(0, 29)))
def test_what_another_form_answers_changes_no_certificate(
    models: list[list[int]], others: list[list[int]], before: list[int], labelled: set[int]
) -> None:
    alone, other = sheet_of(300, before, models, 3.0), sheet_of(300, before, others, 3.0, "onnx_int8")
    changed = sheet_of(300, before, [*models, *others], 3.0).changed
    both = alone.model_copy(update={"changed": changed, "models": [*alone.models, *other.models]})
    labels = {f"row{place}": 2 for place in labelled}
    assert certify_sheet(both, "compact", labels) == certify_sheet(alone, "compact", labels)
    assert certify_sheet(both, "onnx_int8", labels) == certify_sheet(other, "onnx_int8", labels)


@given(
    st.integers(1, 5000),
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 30),
    st.sampled_from([0.005, 0.01, 0.02, 0.1]),
)
@settings(deadline=None, max_examples=80)
def test_no_completion_of_missing_labels_has_a_larger_p_value(
    rows: int, gained: int, lost: int, missing: int, margin: float
) -> None:
    rows += gained + lost + missing
    worst = exact_p_value(gained, lost, rows, margin, missing)
    rng = np.random.default_rng(rows)
    for _ in range(5):
        more = int(rng.integers(missing + 1))
        less = int(rng.integers(missing - more + 1))
        assert exact_p_value(gained + more, lost + less, rows, margin) <= worst + 1e-4  # steps of the grid


@pytest.mark.parametrize(("rows", "margin"), [(150, 0.02), (400, 0.02), (1000, 0.01)])
def test_without_labels_it_is_a_bound_on_changed_answers(rows: int, margin: float) -> None:
    most = most_changed(rows, margin)
    assert (most >= 0) == (rows >= (fewest_rows(margin) or rows + 1))
    if most >= 0:
        # At this many changed answers a share of the margin is unlikely, and one more is not refused needlessly.
        assert binom.cdf(most, rows, margin) <= ALPHA
        assert binom.cdf(most + 2, rows, margin) > ALPHA
    before = [0] * (most + 2)
    for changed in range(most + 2):
        answers = [1] * changed + [0] * (most + 2 - changed)
        certified = standing_of(sheet_of(rows, before, [answers], 100 * margin), "compact", {}).passed == 1
        assert certified == (changed <= most)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "gain"), [(60, 0.0), (60, 0.05), (150, 0.02)])
def test_at_the_margin_one_data_set_of_twenty_is_certified_whatever_is_labelled_when(rows: int, gain: float) -> None:
    margin, rng, false = 0.05, np.random.default_rng(1), 0
    draws = 1500
    for _ in range(draws):
        kinds = rng.choice(3, size=rows, p=[1 - 2 * gain - margin, gain + margin, gain])
        lost, gained = int((kinds == 1).sum()), int((kinds == 2).sum())
        before, after = [0] * (lost + gained), [1] * (lost + gained)
        sheet = sheet_of(rows, before, [after], 100 * margin)
        truth = {f"row{place}": 0 if place < lost else 1 for place in range(lost + gained)}
        known: dict[str, int] = {}
        while asked := needed(sheet, known):
            known[asked[0].id] = truth[asked[0].id]
        false += standing_of(sheet, "compact", known).passed
    assert false <= binom.ppf(0.9999, draws, ALPHA)


@given(st.integers(0, 10_000), st.integers(30, 300))
@settings(deadline=None, max_examples=30)
def test_tags_are_labelled_in_any_order_too(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    before = [rng.integers(3, size=6).tolist() for _ in range(12)]
    after = [[int(rng.integers(3)) if rng.random() < 0.3 else tag for tag in tags] for tags in before]
    truth = {f"row{place}": rng.integers(3, size=6).tolist() for place in range(12)}
    sheet = AnswerSheet(
        task="token_classification",
        metric="accuracy (mean over sentences)",
        test="betting",
        classes=CLASSES,
        points=20.0,
        rows=rows,
        unlabelled=rows,
        changed=[
            ChangedRow(id=f"row{n}", place=n, inputs={"tokens": ["a"] * 6}, before=tags)
            for n, tags in enumerate(before)
        ],
        models=[
            PathAnswers(
                seq=1, form="compact", times=2.0, answers={n: tags for n, tags in enumerate(after) if tags != before[n]}
            )
        ],
    )
    known: dict[str, list[int]] = {}
    last = p_value_of(sheet, sheet.models[0], known, 0.2)
    for id in rng.permutation(list(truth)).tolist():
        known[id] = truth[id]
        now = p_value_of(sheet, sheet.models[0], known, 0.2)
        assert now <= last + 1e-12
        last = now
    fall = np.zeros(rows)
    most = np.zeros(rows)
    for n, tags in enumerate(before):
        right, expected = np.array(tags), np.array(truth[f"row{n}"])
        fall[n] = np.mean(right == expected) - np.mean(np.array(after[n]) == expected)
        most[n] = np.mean(right != np.array(after[n]))
    assert last == pytest.approx(betting_p_value(fall, 0.2, most), rel=1e-9)


def test_labels_are_read_by_name_or_by_index_and_others_are_refused() -> None:
    sheet = sheet_of(100, [0, 1], [[1, 2]], 5.0)
    row = sheet.changed[0]
    assert [label_of(sheet, row, value) for value in ("good", " fair ", 0, "2")] == [2, 1, 0, 2]
    for value in ("great", 3, -1, "", 1.5):
        with pytest.raises(DataError, match="the labels are bad, fair, good"):
            label_of(sheet, row, value)


CHUNK_TAGS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG"]


def chunked(tags: list[int]) -> set[tuple[str, int, int]]:
    return chunks_of([CHUNK_TAGS[tag] for tag in tags])


def chunk_sheet(before: list[list[int]], after: list[list[int]], points: float) -> AnswerSheet:
    changed = [place for place, tags in enumerate(before) if after[place] != tags]
    return AnswerSheet(
        task="token_classification",
        metric="f1",
        test="worst_case",
        classes=CHUNK_TAGS,
        points=points,
        rows=len(before),
        unlabelled=len(before),
        chunks=[len(chunked(tags)) for tags in before],
        changed=[
            ChangedRow(id=f"row{place}", place=place, inputs={"tokens": ["a"]}, before=before[place])
            for place in changed
        ],
        models=[
            PathAnswers(seq=1, form="compact", times=2.0, answers={place: after[place] for place in changed}),
        ],
    )


def entities(rng: np.random.Generator, rows: int, wrong: float, like: list[list[int]] | None = None) -> list[list[int]]:
    """Sentences of six words; like others, but for a share of the words."""
    found = [rng.choice(5, size=6, p=[0.5, 0.2, 0.1, 0.1, 0.1]) for _ in range(rows)] if like is None else like
    return [
        [int(rng.integers(5)) if like is not None and rng.random() < wrong else int(tag) for tag in tags]
        for tags in found
    ]


@given(st.integers(0, 10_000), st.sampled_from([30, 100, 400, 2000]))
@settings(deadline=None, max_examples=30)
def test_chunks_are_labelled_in_any_order_and_no_label_raises_the_p_value(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    before = entities(rng, rows, 0.0)
    after = entities(rng, rows, 0.01, before)
    truth = {f"row{place}": tags for place, tags in enumerate(entities(rng, rows, 0.2, before))}
    sheet = chunk_sheet(before, after, 5.0)
    model, known = sheet.models[0], dict[str, list[int]]()
    bests = p_value_of(sheet, model, {}, 0.05, is_worst=False)
    last = p_value_of(sheet, model, {}, 0.05)
    for id in rng.permutation([row.id for row in sheet.changed])[:40].tolist():
        known[id] = truth[id]
        now = p_value_of(sheet, model, known, 0.05)
        assert bests - 1e-12 <= now <= last + 1e-12
        last = now


def test_without_any_change_as_many_rows_certify_f1_as_any_share_of_right_answers() -> None:
    for rows, is_enough in ((298, False), (299, True)):
        same = [[1, 2, 0]] * rows
        sheet = chunk_sheet(same, same, 1.0)
        model = PathAnswers(seq=1, form="compact", times=2.0, answers={})
        assert (p_value_of(sheet, model, {}, 0.01) <= ALPHA) == is_enough


def test_the_words_of_a_changed_chunk_are_asked_for_and_its_loss_counts_twice_its_share() -> None:
    before = [[1, 2, 0, 3]] * 400
    after = [[1, 0, 0, 3], *before[1:]]
    sheet = chunk_sheet(before, after, 1.0)
    assert asked_words(sheet, sheet.changed[0]) == [0, 1]
    # (2 * 1 - 0.01 * 3) - 399 * 0.01 * 2, over the root of the squares of the largest falls: 2 and 0.02 to three digits.
    expected = NormalDist().cdf((2 - 0.03 - 399 * 0.02) / (1 * (2 + 0.01 * 6) ** 2 + 399 * 0.02**2) ** 0.5)
    assert p_value_of(sheet, sheet.models[0], {}, 0.01) == pytest.approx(max(expected, 0.99**400), rel=1e-6)
    assert p_value_of(sheet, sheet.models[0], {"row0": [1, 0, 0, 3]}, 0.01) == pytest.approx(0.99**400)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [100, 400])
def test_at_the_margin_f1_is_certified_for_one_data_set_of_twenty_at_most(rows: int) -> None:
    """New answers lose chunks at random until F1 has fallen by the points; then all labels are known."""
    margin, draws, rng, false = 0.05, 300, np.random.default_rng(0), 0
    population = entities(rng, 20_000, 0.0)
    truth = entities(rng, 20_000, 0.03, population)

    def f1_of(answers: list[list[int]]) -> float:
        counts = np.array(
            [
                (len(chunked(a) & chunked(t)), len(chunked(a)), len(chunked(t)))
                for a, t in zip(answers, truth, strict=True)
            ]
        ).sum(axis=0)
        return 2 * counts[0] / (counts[1] + counts[2])

    before, share = f1_of(population), 0.0
    worse = population
    while before - f1_of(worse) < margin:
        share += 0.003
        worse = entities(np.random.default_rng(5), 20_000, share, population)
    for _ in range(draws):
        drawn = rng.integers(20_000, size=rows).tolist()
        sheet = chunk_sheet([population[one] for one in drawn], [worse[one] for one in drawn], 100 * margin)
        known = {f"row{place}": truth[one] for place, one in enumerate(drawn)}
        false += standing_of(sheet, "compact", known).passed
    assert false <= binom.ppf(0.9999, draws, ALPHA)


@pytest.mark.parametrize("answers", [[[9, 9, 9, 9]], [[-1, 0, 0, 0]]])
def test_a_sheet_of_chunks_whose_tags_nobody_knows_is_refused(answers: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="none of the classes"):
        AnswerSheet.model_validate(chunk_sheet([[1, 2, 0, 0]] * 40, [*answers, *[[1, 2, 0, 0]] * 39], 1.0).model_dump())
