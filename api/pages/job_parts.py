"""What the page of a job shows, as values for its templates."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from api.job_views import job_read
from api.pages.model_map import map_of
from api.resources import Resources
from api.services import artifacts, jobs, queue
from axformer.plan.trial import Verdict
from store.repositories.events import events_after
from store.repositories.keys import Caller
from store.repositories.trace_views import Point, element_points, trace_totals
from store.states import TERMINAL, TRANSITIONS, JobState
from store.tables.jobs import Job

MOST_NEURONS = 3000
"""Trials of neurons that the map shows one by one: a large encoder in groups of a twelfth has 300; more than some thousand
would be thinner than a line."""
EVENTS_SHOWN = 200
"""Of a job's log; a job that is not interrupted writes some ten."""


def job_values(session: Session, resources: Resources, caller: Caller, job: Job) -> dict[str, Any]:
    """Everything but the map."""
    is_queued = job.state is JobState.QUEUED
    place = queue.place_of(resources.queue_views.get(), caller, job) if is_queued else None
    shown = job_read(job, jobs.passes(session, [job]), place)
    events = events_after(session, job.id, limit=EVENTS_SHOWN)
    return {
        "job": shown,
        "totals": trace_totals(session, job.id),
        "has_ended": job.state in TERMINAL,
        "files": artifacts.list_artifacts(session, job.team_id, job.id) if job.state in TERMINAL else [],
        "events": list(reversed(events.items)),
        "actions": actions(job),
    }


def map_values(session: Session, job: Job) -> dict[str, Any]:
    """The map; null until a worker has looked at the model."""
    dimensions = (job.progress or {}).get("dimensions")
    if not dimensions:
        return {"map": None}
    points, is_whole = element_points(session, job.id, most_neurons=MOST_NEURONS)
    return {"map": map_of(dimensions, _standing(points, job.path or []), is_whole=is_whole)}


def _standing(points: Sequence[Point], path: Sequence[Mapping[str, Any]]) -> list[Point]:
    """The trials with what is accepted beyond the point of the path that was kept as rejected, which it is in the end."""
    kept = next((one["seq"] for one in path if one["kept"]), None)
    if kept is None:
        return list(points)
    undone = (point.seq > kept and point.verdict == Verdict.ACCEPT for point in points)
    return [
        point._replace(verdict=Verdict.REJECT) if is_undone else point
        for point, is_undone in zip(points, undone, strict=True)
    ]


def actions(job: Job) -> list[str]:
    """What can be done with a job now; a pass of a search is steered with the search."""
    if job.parent_id is not None:
        return []
    following = TRANSITIONS[job.state]
    able = {
        "pause": bool(following & {JobState.PAUSING, JobState.PAUSED}),
        "resume": job.state is JobState.PAUSED,
        "retry": job.state in (JobState.FAILED, JobState.CANCELLED),
        "cancel": bool(following & {JobState.CANCELLING, JobState.CANCELLED}),
        "delete": job.state in TERMINAL,
    }
    return [name for name, is_able in able.items() if is_able]
