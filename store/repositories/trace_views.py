"""Views of a job's trace: sorted and filtered, thinned for a chart, summarized for a map."""

import random
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Integer, Text, func, literal, or_, select, true
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Session

from axformer.plan.elements import ElementKind
from axformer.plan.trial import Trial, Verdict
from store.tables.jobs import TrialRow

SORTABLE = ("seq", "phase", "element", "verdict", "loss", "helped", "parameters", "seconds")
"""Columns that a table can be sorted by."""
_STANDING = (Verdict.BASE.value, Verdict.ACCEPT.value)
_MANY = 8
"""How many times as many trials there may be as a chart marks, until it marks only some of those that were accepted."""
_TURNS = (*_STANDING, Verdict.REFINE.value)
_NUMBER = re.compile(r"\d+")
_NEURONS = f".{ElementKind.NEURONS.value}."
"""What the ids of neurons hold."""
_COLUMNS = tuple(getattr(TrialRow, name) for name in Trial.model_fields)


class TracePoint(NamedTuple):
    """A trial as a mark in a chart."""

    seq: int
    loss: float
    verdict: str
    loss_is_bound: bool
    min_loss: float
    element: str | None
    helped: int | None
    samples: int
    frequency: float | None


class Totals(NamedTuple):
    """Figures of a whole trace."""

    trials: int
    accepted: int
    refined: int
    rejected: int
    early: int
    """Rejected trials whose loss is a bound."""
    removed_parameters: int
    """Parameters that accepted trials removed; hard attention removes none."""
    seconds: float


def trial_table(
    session: Session, fits: Sequence[ColumnElement[bool]], sort: str, *, descending: bool, offset: int, limit: int
) -> tuple[Sequence[Trial], int]:
    """A page of the trials that fit, and their total number. Equal trials keep the order of the pass.

    Args:
        fits: see :func:`fitting`.
        sort: one of ``SORTABLE``.
    """
    total = session.scalars(select(func.count()).select_from(TrialRow).where(*fits)).one()
    column = getattr(TrialRow, sort)
    order = column.desc().nulls_last() if descending else column.asc().nulls_last()
    rows = session.execute(
        select(*_COLUMNS).where(*fits).order_by(order, TrialRow.seq).offset(offset).limit(limit)
    ).mappings()
    return [Trial.model_validate(dict(row)) for row in rows], total


def thinned_points(session: Session, job_id: str, *, most: int) -> list[TracePoint]:
    """Trials as marks of a chart, in order: about ``most`` of the rejected ones, and all accepted and refined ones, or a few
    times as many of them, drawn by their numbers, with the first and the last."""
    shown = TrialRow.job_id == job_id
    # Trials are numbered without gaps, and the last number is found without counting.
    last = session.scalars(select(func.max(TrialRow.seq)).where(shown)).one() or 0
    step = max(1, -(-last // most))
    kept = [shown]
    if step > 1:
        kept.append(or_(TrialRow.seq % step == 0, TrialRow.seq == last, TrialRow.verdict.in_(_TURNS)))
    if step > _MANY:  # those alone are read
        part, draw = step // _MANY, random.Random(0)  # noqa: S311 - so that a chart changes little as it grows
        drawn = {first + draw.randrange(part) for first in range(0, last, part)}
        kept.append(TrialRow.seq == func.any(literal([*drawn, *range(0, last, step), last], ARRAY(Integer))))
    columns = (getattr(TrialRow, name) for name in TracePoint._fields)
    return [TracePoint(*row) for row in session.execute(select(*columns).where(*kept).order_by(TrialRow.seq))]


def standing_trials(session: Session, job_id: str) -> list[Trial]:
    """The base and each accepted trial, in order: the path of the pass."""
    query = select(*_COLUMNS).where(TrialRow.job_id == job_id, TrialRow.verdict.in_(_STANDING))
    return [Trial.model_validate(dict(row)) for row in session.execute(query.order_by(TrialRow.seq)).mappings()]


def element_points(session: Session, job_id: str, *, most_neurons: int) -> tuple[list[TracePoint], bool]:
    """The trials of all elements, the last of each being its verdict, and whether they include those of neurons.

    They do not if there are more than ``most_neurons`` of them: :func:`gone_neurons` says what came of those.
    """
    shown = TrialRow.job_id == job_id
    # By the element, since a trade tries neurons too; the base has none.
    is_neurons = func.coalesce(TrialRow.element.contains(_NEURONS), False)
    some = select(TrialRow.seq).where(shown, is_neurons).limit(most_neurons + 1).subquery()
    whole = session.scalars(select(func.count()).select_from(some)).one() <= most_neurons
    kept = (shown,) if whole else (shown, ~is_neurons)
    columns = (getattr(TrialRow, name) for name in TracePoint._fields)
    return [TracePoint(*row) for row in session.execute(select(*columns).where(*kept).order_by(TrialRow.seq))], whole


def gone_neurons(session: Session, job_id: str, *, upto: int | None) -> dict[int, list[tuple[int, int]]]:
    """The neurons that accepted trials removed, up to one of them: ascending half-open ranges by layer."""
    accepted = [TrialRow.job_id == job_id, TrialRow.verdict == Verdict.ACCEPT.value]
    accepted += [TrialRow.element.contains(_NEURONS), *([] if upto is None else [TrialRow.seq <= upto])]
    layer, parts = (func.split_part(TrialRow.element, ".", place) for place in (2, 5))
    joined = select(layer.cast(Integer).label("layer"), func.string_agg(parts, ",").label("parts"))
    layers = (
        joined.where(*accepted).group_by("layer").subquery()
    )  # split once a layer, which costs less than once a trial
    part = func.string_to_table(layers.c.parts, ",").table_valued("part").render_derived()
    first, last = (func.split_part(part.c.part, ":", number) for number in (1, 2))
    stop = func.coalesce(func.nullif(last, "").cast(Integer), first.cast(Integer) + 1)
    ranges = func.range_agg(func.int4range(first.cast(Integer), stop)).cast(Text)  # the driver reads ranges slowly
    query = select(layers.c.layer, ranges).join_from(layers, part, true()).group_by(layers.c.layer)
    edges = {index: list(map(int, _NUMBER.findall(found))) for index, found in session.execute(query)}
    return {index: list(zip(found[::2], found[1::2], strict=True)) for index, found in edges.items()}


def last_plan(session: Session, job_id: str, *, upto: int | None) -> list[dict[str, Any]] | None:
    """The last whole plan among the job's trials, up to one of them; None if its trials are of elements."""
    query = select(TrialRow.plan).where(TrialRow.job_id == job_id, TrialRow.plan.is_not(None))
    if upto is not None:
        query = query.where(TrialRow.seq <= upto)
    return session.scalars(query.order_by(TrialRow.seq.desc()).limit(1)).one_or_none()


def trace_totals(session: Session, job_id: str) -> Totals:
    """The figures of the job's trace."""

    def counted(verdict: Verdict) -> ColumnElement[int]:
        return func.count().filter(TrialRow.verdict == verdict.value)

    removed = func.coalesce(func.sum(TrialRow.parameters).filter(TrialRow.verdict == Verdict.ACCEPT.value), 0)
    verdicts = (counted(verdict) for verdict in (Verdict.ACCEPT, Verdict.REFINE, Verdict.REJECT))
    early = func.count().filter(TrialRow.verdict == Verdict.REJECT.value, TrialRow.loss_is_bound)
    seconds = func.coalesce(func.max(TrialRow.seconds), 0.0)
    query = select(func.count(), *verdicts, early, removed, seconds).where(TrialRow.job_id == job_id)
    row = session.execute(query).one()
    return Totals(*row[:5], int(row[5]), row[6])


def fitting(job_id: str, verdict: str = "", phase: str = "", element: str = "") -> list[ColumnElement[bool]]:
    """Which trials of a job a table shows: those of a verdict and a phase, whose element's id contains a text; empty is any."""
    conditions: list[ColumnElement[bool]] = [TrialRow.job_id == job_id]
    if verdict:
        conditions.append(TrialRow.verdict == verdict)
    if phase:
        conditions.append(TrialRow.phase == phase)
    if element:
        conditions.append(TrialRow.element.icontains(element, autoescape=True))
    return conditions
