"""Groups of jobs: create them with all cells, find, list and remove them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, exists, func, select, tuple_
from sqlalchemy.orm import Session

from store.ids import GROUP_PREFIX, new_id
from store.page import Page, page_of
from store.repositories.once import insert_once
from store.states import JobState
from store.tables.groups import Group
from store.tables.jobs import Job


@dataclass(frozen=True)
class NewGroup:
    """What a new group is made of; see ``store.tables.groups.Group`` for the fields."""

    team_id: str
    name: str
    grid: dict[str, Any]
    idempotency_key: str | None = None
    body_sha256: bytes | None = None


@dataclass(frozen=True)
class CreatedGroup:
    """A group, and whether it is new or an earlier one with the same idempotency key."""

    group: Group
    is_new: bool


@dataclass(frozen=True)
class Figures:
    """The figures that a table shows of a succeeded job's report."""

    comparison: dict[str, Any]
    parameters: tuple[int, int]
    """Before and after."""
    encoder: tuple[int, int] | None
    """Those of the transformer layers; None in reports of earlier versions."""
    latency_ms: tuple[float, float]
    """Before and after."""
    one_position_ms: float | None
    """The untouched model in the compact model's class; None if that computes the same, or in reports of earlier versions."""
    estimated_speedup: float
    verdict: str | None
    """Verdict of the finding; None in reports of earlier versions."""
    is_target_reached: bool | None
    """None if it had no target."""


@dataclass(frozen=True)
class CellRow:
    """One job of a group."""

    job_id: str
    cell: dict[str, Any]
    preset: str
    config: dict[str, Any]
    """Every knob with its value."""
    state: JobState
    figures: Figures | None
    """None if it has not succeeded."""


def create_group(session: Session, new: NewGroup) -> CreatedGroup:
    """Create a group without cells, or find the team's group with this idempotency key.

    A concurrent request with the same key waits for this transaction, so a group that is found has all its cells.
    """
    values = vars(new) | {"id": new_id(GROUP_PREFIX)}
    same_key = select(Group).where(Group.team_id == new.team_id, Group.idempotency_key == new.idempotency_key)
    return CreatedGroup(*insert_once(session, Group, values, same_key))


def find_group(session: Session, group_id: str, team_id: str) -> Group | None:
    """The team's group with this id; None also if it is another team's."""
    return session.scalars(select(Group).where(Group.id == group_id, Group.team_id == team_id)).one_or_none()


def list_groups(session: Session, team_id: str, *, limit: int, after: Group | None = None) -> Page[Group]:
    """The team's groups, newest first, from the one after ``after`` on."""
    query = select(Group).where(Group.team_id == team_id)
    if after is not None:
        query = query.where(tuple_(Group.created_at, Group.id) < (after.created_at, after.id))
    query = query.order_by(Group.created_at.desc(), Group.id.desc()).limit(limit + 1)
    return page_of(session.scalars(query).all(), limit)


def cells_of(session: Session, group_ids: Sequence[str]) -> dict[str, list[CellRow]]:
    """The cells of each of these groups in the order in which they were posted, with what tables need of their reports."""
    base, pruned = Job.summary["base"], Job.summary["pruned"]
    query = (
        select(
            *(Job.group_id, Job.id, Job.cell, Job.preset, Job.config, Job.state, Job.summary["comparison"]),
            *(model[name] for name in ("parameters", "encoder_parameters") for model in (base, pruned)),
            *(base["latency_ms"], Job.summary["one_position_ms"], pruned["latency_ms"]),
            *(Job.summary["estimated_speedup"], Job.summary["finding"]["verdict"].astext),
            Job.summary["target"]["reached"],
        )
        .where(Job.group_id.in_(group_ids))
        .order_by(Job.id)
    )
    cells: dict[str, list[CellRow]] = {group_id: [] for group_id in group_ids}
    for group_id, job_id, cell, preset, config, state, comparison, *rest in session.execute(query):
        figures = _figures(comparison, rest) if state is JobState.SUCCEEDED and comparison is not None else None
        cells[group_id].append(CellRow(job_id, cell, preset, config, state, figures))
    return cells


def _figures(comparison: dict[str, Any], values: Sequence[Any]) -> Figures:
    """The figures from the selected columns."""
    before, after, encoder_before, encoder_after, slow, between, fast, speedup, verdict, reached = values
    encoder = None if encoder_before is None or encoder_after is None else (encoder_before, encoder_after)
    return Figures(comparison, (before, after), encoder, (slow, fast), between, speedup, verdict, reached)


def state_counts(session: Session, group_ids: Sequence[str]) -> dict[str, dict[JobState, int]]:
    """For each of these groups, the number of jobs in each state that occurs."""
    counts = select(Job.group_id, Job.state, func.count()).where(Job.group_id.in_(group_ids))
    by_state: dict[str, dict[JobState, int]] = {group_id: {} for group_id in group_ids}
    for group_id, state, jobs in session.execute(counts.group_by(Job.group_id, Job.state)):
        by_state[str(group_id)][state] = jobs
    return by_state


def jobs_of(session: Session, group_id: str) -> Sequence[Job]:
    """The jobs of a group in the order in which they were posted."""
    query = select(Job).where(Job.group_id == group_id).order_by(Job.id)
    return session.scalars(query).all()


def remove_group(session: Session, group: Group) -> None:
    """Delete a group that has no jobs left."""
    session.delete(group)
    session.flush()


def remove_empty_groups(session: Session) -> int:
    """Remove groups without jobs, and return their number."""
    gone = delete(Group).where(~exists().where(Job.group_id == Group.id)).returning(Group.id)
    return len(session.scalars(gone).all())
