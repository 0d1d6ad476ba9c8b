"""Certify a model by two lists of answers: no model, no PyTorch, and labels for few of the rows.

Only where the answers differ does a label matter, and only until the worst case of those without one passes the exact test
(:func:`axformer.scores.paired_tests.exact_p_value`), which may be looked at after every label.
"""

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any
from unicodedata import normalize

import numpy as np

from axformer.errors import ConfigError, DataError
from axformer.scores.paired_tests import ALPHA, exact_p_value
from axformer.scores.planning import POINT, lost_in_words

SEED = 0
"""Of the order in which labels are asked for."""
_IDS = ("id", "doc_id", "idx")
_ANSWERS = ("answer", "prediction", "predicted", "pred")
_LABELS = ("label", "target", "gold")
_METRICS = ("exact_match", "acc", "acc_norm")
"""What lm-eval's logged samples call the share of right answers: 1 where the sample is right."""
_FILTER, _HASH = "filter", "doc_hash"
"""lm-eval's names for the way in which an answer was read from the text, and for what a sample asks."""
_UNKNOWN = {"nan", "n/a", "na", "none", "null", "<na>", "nat", "?"}
"""What programs and people write for a label that they do not know."""
_GAPS = ("<NA>", "NaT")
"""How pandas prints its own values for a gap."""
_WHOLE = re.compile(r"(-?\d+)\.0+")


@dataclass(frozen=True)
class AnswersVerdict:
    """Whether a model lost less than some points, on all rows or on those of one group."""

    rows: int
    changed: int
    """Answers that are other ones."""
    gained: int
    """Of these, those that only the second model has right."""
    lost: int
    """Those that only the first one has right."""
    unlabelled: int
    """Those without a label, which count as lost."""
    points: float
    p_value: float
    """In the worst case; among several groups adjusted for their number (Holm, 1979)."""
    needed: tuple[int, ...] = ()
    """The rows whose labels it waits for, in the order in which they are asked; empty where it is certified or out of reach."""
    group: str | None = None

    @property
    def is_certified(self) -> bool:
        """Whether it is shown to have lost less than the points."""
        return self.p_value <= ALPHA

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        of = "" if self.group is None else f"{self.group}: "
        lost = f"{self.lost:,} became wrong, {self.gained:,} right"
        wrong = self.changed - self.lost - self.gained - self.unlabelled
        stayed = f", {wrong:,} stayed wrong" if wrong else ""
        unknown = f", {self.unlabelled:,} without a label" if self.unlabelled else ""
        changed = "1 answer" if self.changed == 1 else f"{self.changed:,} answers"
        told = f"p = {self.p_value:.2g}; {changed} changed: {lost}{stayed}{unknown}"
        points = f"{self.points:g} point{'' if self.points == 1 else 's'}"
        if self.is_certified:
            return f"{of}Certified: {lost_in_words(self.points, 'accuracy', self.rows)} ({told})."
        if self.needed:
            return (
                f"{of}Not certified yet: on {self.rows:,} rows it may have lost {points} or more; at most "
                f"{len(self.needed):,} {'label decides' if len(self.needed) == 1 else 'labels decide'} ({told})."
            )
        return f"{of}Not certified: on {self.rows:,} rows it may have lost {points} or more ({told})."


@dataclass(frozen=True)
class Certified:
    """The verdict on all rows, and on each group if there are groups."""

    whole: AnswersVerdict
    groups: tuple[AnswersVerdict, ...] = ()

    @property
    def is_certified(self) -> bool:
        """Whether every group is certified, or without groups the whole."""
        return all(verdict.is_certified for verdict in self.groups or (self.whole,))

    @property
    def needed(self) -> list[int]:
        """The rows whose labels are waited for, in the order in which they are asked."""
        return list(dict.fromkeys(row for verdict in self.groups or (self.whole,) for row in verdict.needed))

    @property
    def sentence(self) -> str:
        """The verdicts, a line each."""
        return "\n".join(verdict.sentence for verdict in (*self.groups, *(() if self.groups else (self.whole,))))


def certify(
    old: Sequence[Hashable],
    new: Sequence[Hashable],
    labels: Sequence[Hashable] | None = None,
    within_points: float = 1.0,
    by: Sequence[Any] | None = None,
) -> Certified:
    """Test with 95 % confidence whether new answers have lost less than some points of accuracy against old ones.

    The rows must not have chosen the model, and are taken for independent: leave copies out.

    Args:
        old: the answers of the model that is replaced, shape (rows,). They are compared as text: 1, 1.0 and "1" are one answer,
            and so are True and "true"; a missing one is right for nobody.
        new: those of the model in its place.
        labels: the right answers, None, NaN or empty where unknown; only those of rows whose answers differ matter.
        within_points: how far the accuracy may fall, in hundredths.
        by: the group of each row, such as its language. Each group is tested, together at 5 % (Holm, 1979).

    Raises:
        ConfigError: the lists are not equally long or empty, or the points are out of range.
        DataError: labels are written otherwise than answers.
    """
    old, new = _all_plain(old), _all_plain(new)
    known = [None] * len(old) if labels is None else _all_plain(labels)
    lengths = {len(old), len(new), len(known), len(old if by is None else by)}
    if len(lengths) > 1 or not len(old):
        raise ConfigError(f"answers, labels and groups have {sorted(lengths)} rows; give as many of each, one at least")
    if not 0.0 < within_points <= 100.0:
        raise ConfigError(f"within_points={within_points:g} must lie above 0 and be 100 at most")
    if old != new:
        _check_labels(known, {*old, *new})
    order = np.random.default_rng(SEED).permutation(len(old)).tolist()
    whole = _verdict(order, old, new, known, within_points, None)
    if by is None:
        return Certified(whole)
    rows_of: dict[str, list[int]] = {}
    for row in order:
        group = _plain(by[row])
        rows_of.setdefault("(none)" if group is None else str(group), []).append(row)
    groups = [_verdict(rows, old, new, known, within_points, name) for name, rows in sorted(rows_of.items())]
    return Certified(whole, _together(groups))


def _verdict(
    rows: Sequence[int],
    old: Sequence[Hashable],
    new: Sequence[Hashable],
    labels: Sequence[Hashable],
    points: float,
    group: str | None,
) -> AnswersVerdict:
    changed = [row for row in rows if old[row] != new[row]]
    unlabelled = tuple(row for row in changed if labels[row] is None)
    labelled = [row for row in changed if labels[row] is not None]
    lost = sum(old[row] == labels[row] for row in labelled)
    gained = sum(new[row] == labels[row] for row in labelled)
    p_value = exact_p_value(gained, lost, len(rows), points * POINT, len(unlabelled))
    best = exact_p_value(gained + len(unlabelled), lost, len(rows), points * POINT)
    needed = unlabelled if best <= ALPHA and (p_value > ALPHA or group is not None) else ()
    return AnswersVerdict(len(rows), len(changed), gained, lost, len(unlabelled), points, p_value, needed, group)


def _check_labels(labels: Sequence[Hashable], answers: set[Hashable]) -> None:
    """Check that labels are written as answers are, since one that is not would count as wrong for both models.

    A label that no model ever answers may be right: a rare class, or a text. It is refused where it differs from an answer by
    its writing alone, where it says that it is unknown, and where no label at all is an answer.
    """
    known = {label for label in labels if label is not None}
    strange = known - answers
    if not strange:
        return
    alike = {_folded(answer): answer for answer in answers if answer is not None}
    for label in sorted(strange, key=str):
        if _folded(label) in alike:
            raise DataError(
                f"the label {label!r} is written otherwise than the answer {alike[_folded(label)]!r}; write labels as answers"
            )
        if str(label).casefold() in _UNKNOWN:
            raise DataError(f"the label {label!r} is no answer of either model; leave a label out that nobody knows")
    if strange == known:
        raise DataError(
            f"none of the labels, such as {min(map(str, strange))!r}, is ever answered by a model; write labels as answers "
            "are, and if both models are wrong on all of these rows, give a label of a row that they answer rightly too"
        )


def _folded(answer: Hashable) -> Hashable:
    """An answer without what its writing alone decides: capitals, the form of a number, the order of a list."""
    if isinstance(answer, tuple):
        return tuple(sorted(map(str, map(_folded, answer))))
    text = str(answer).casefold()
    try:
        return float(text)
    except ValueError:
        return text


def _together(groups: Sequence[AnswersVerdict]) -> tuple[AnswersVerdict, ...]:
    """The groups with p-values adjusted so that all hold together (Holm, 1979)."""
    adjusted, largest = {}, 0.0
    for place, verdict in enumerate(sorted(groups, key=lambda one: one.p_value)):
        largest = min(1.0, max(largest, (len(groups) - place) * verdict.p_value))
        adjusted[verdict.group] = largest
    found = []
    for verdict in groups:
        p_value = adjusted[verdict.group]
        found.append(replace(verdict, p_value=p_value, needed=() if p_value <= ALPHA else verdict.needed))
    return tuple(found)


@dataclass(frozen=True)
class AnswersFile:
    """The answers of a model, from a file."""

    ids: list[str]
    answers: Sequence[Hashable]
    labels: Sequence[Hashable]
    """None where unknown."""
    table: Mapping[str, Sequence[Any]]
    metric: str | None = None
    """By which lm-eval judged its samples; None for a file of answers."""


def read_answers(path: str | Path) -> AnswersFile:
    """Read the answers of a model: JSON Lines, CSV or Parquet with the columns ``id`` and ``answer``, and perhaps ``label``; or
    samples that lm-eval logged, of which is taken whether they are right.

    Raises:
        DataError: the file cannot be read, or lacks a column, or a row lacks its id, or has that of another.
    """
    from axformer.data.reading import read_rows  # imports what reads every format

    table = read_rows(str(path)).table
    plain = _all_plain(_column(table, _IDS, path, "the ids of its rows"))
    if None in plain:
        raise DataError(f"'{path}', row {plain.index(None) + 1} has no id; give every row one")
    ids = list(map(str, plain))
    twice = len(ids) - len(set(ids))
    if twice:
        filters = sorted({str(one) for one in table.get(_FILTER, ())})
        named = f"; keep the samples of one filter: {', '.join(filters)}" if len(filters) > 1 else ""
        raise DataError(f"'{path}' has {twice:,} ids more than once; give each row one answer{named}")
    metric = next((name for name in _METRICS if name in table), None)
    if metric is not None and not any(name in table for name in _ANSWERS):
        return AnswersFile(ids, _right(table[metric], path, metric), [True] * len(ids), table, metric)
    labels = next((table[name] for name in _LABELS if name in table), [None] * len(ids))
    return AnswersFile(ids, _column(table, _ANSWERS, path, "the answers"), labels, table)


def _right(values: Sequence[Any], path: str | Path, metric: str) -> list[Hashable]:
    """Whether each sample that lm-eval judged is right."""
    odd = next((place for place, value in enumerate(values) if value not in (0, 1)), None)
    if odd is not None:
        raise DataError(f"'{path}', row {odd + 1}: {metric} is {values[odd]!r}; a sample is right (1) or wrong (0)")
    return [value == 1 for value in values]


def _column(table: Mapping[str, Sequence[Any]], names: Sequence[str], path: str | Path, what: str) -> Sequence[Any]:
    found = next((table[name] for name in names if name in table), None)
    if found is None:
        raise DataError(f"'{path}' has no column with {what}: {', '.join(names)}; its columns are {', '.join(table)}")
    return found


def _all_plain(values: Sequence[Any]) -> list[Hashable]:
    """The values as they compare alike in all formats; whole numbers, and gaps alone, in a tenth of the time."""
    kinds = set(map(type, values))
    return list(map(str, values)) if kinds == {int} else list(values if kinds == {NoneType} else map(_plain, values))


def _plain(value: Any) -> Hashable:
    """A value that compares alike in all formats: numbers as they are written in CSV too; None where nothing stands."""
    if type(value) is int:
        return str(value)
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return str(sorted(value.items()))
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()
    if isinstance(value, bool | np.bool_):
        text = text.lower()
    elif text.endswith("0") and (whole := _WHOLE.fullmatch(text)):  # of a column of numbers with gaps
        text = whole[1]
    elif not text.isascii():
        text = normalize("NFC", text)
    return text if text and (isinstance(value, str) or text not in _GAPS) else None


def certify_files(
    old: str | Path, new: str | Path, labels: str | Path | None, within_points: float, by: str | None = None
) -> tuple[Certified, AnswersFile]:
    """The verdict on two files of answers, matched by their ids; with the first file.

    Args:
        labels: a file with ``id`` and ``label``; None for those that the files of answers have.
        by: a column of the first file.

    Raises:
        InputError: a file cannot be read, or they do not belong together.
    """
    first, second = read_answers(old), read_answers(new)
    place = {id: row for row, id in enumerate(second.ids)}
    missing = sum(id not in place for id in first.ids)
    if missing or len(first.ids) != len(second.ids):
        raise DataError(
            f"'{old}' has {len(first.ids):,} rows and '{new}' {len(second.ids):,}, and {missing:,} ids of the first are not in "
            "the second; give the answers of both models to the same rows"
        )
    if first.metric != second.metric:
        names = " and ".join(f"'{path}' by {one.metric or 'answers'}" for path, one in ((old, first), (new, second)))
        raise DataError(f"{names}: the samples are not judged alike; give two files of one kind")
    asked = [one.table[_HASH] for one in (first, second) if _HASH in one.table]
    if len(asked) == 2 and any(asked[1][place[id]] != own for id, own in zip(first.ids, asked[0], strict=True)):
        raise DataError(f"samples of '{old}' and '{new}' with one id ask for other things; give those of one task")
    answers = [second.answers[place[id]] for id in first.ids]
    right = first.labels if labels is None else _labels_of(labels, first)
    if by is not None and by not in first.table:
        raise DataError(f"'{old}' has no column '{by}'; its columns are {', '.join(first.table)}")
    return certify(first.answers, answers, right, within_points, None if by is None else first.table[by]), first


def _labels_of(path: str | Path, answers: AnswersFile) -> list[Hashable]:
    """The labels of a file for the rows of the answers, beside those that these have."""
    from axformer.data.reading import read_rows

    table = read_rows(str(path)).table
    ids, given = (_column(table, names, path, what) for names, what in ((_IDS, "ids"), (_LABELS, "labels")))
    found: dict[str, Hashable] = {}
    for id, label in zip(map(str, map(_plain, ids)), map(_plain, given), strict=True):
        found[id] = label if found.get(id, label) == label else None  # people who disagree count as no label
    unknown = len(found.keys() - set(answers.ids))
    if unknown:
        raise DataError(f"'{path}' has {unknown:,} ids that the answers have not; give labels of these rows alone")
    return [found.get(id, own) for id, own in zip(answers.ids, answers.labels, strict=True)]
