"""The values for the templates of a job's page."""

from typing import Any

from pydantic import ValidationError
from sqlalchemy.orm import Session

from api.pages.job_result import bundles_of, deploy_of
from api.resources import Resources
from api.services import artifacts, queue
from api.services.paths import points_of
from api.views.jobs import job_read
from axformer.scores.path_costs import PathModel, told_beyond
from store.repositories.events import events_after
from store.repositories.keys import Caller
from store.repositories.trace_views import trace_totals
from store.states import TERMINAL, TRANSITIONS, JobState
from store.tables.jobs import Job

EVENTS_SHOWN = 200
"""Most events that are shown; an uninterrupted job writes about ten."""


def job_values(session: Session, resources: Resources, caller: Caller, job: Job) -> dict[str, Any]:
    """All values except the pictures."""
    is_queued = job.state is JobState.QUEUED
    place = queue.place_of(resources.queue_views.get(), caller, job) if is_queued else None
    shown = job_read(job, place)
    events = events_after(session, job.id, limit=EVENTS_SHOWN)
    files = artifacts.list_artifacts(session, job.team_id, job.id) if job.state in TERMINAL else []
    bundles = bundles_of(files)
    return {
        "job": shown,
        "totals": trace_totals(session, job.id),
        "has_ended": job.state in TERMINAL,
        "files": files,
        "bundles": bundles,
        "deploy": deploy_of(job.summary, bundles),
        "beyond": _beyond(job),
        "events": list(reversed(events.items)),
        "actions": actions(job),
    }


def _beyond(job: Job) -> tuple[str, PathModel] | None:
    """What else the job's path offers; None also for a path of an earlier version, which tells less of its models."""
    try:
        points = points_of(job)
    except ValidationError:
        return None
    certificate = (job.summary or {}).get("certificate")
    return told_beyond(points, job.config.get("within_points"), is_certified=certificate is not None)


def actions(job: Job) -> list[str]:
    """What can be done with a job now."""
    following = TRANSITIONS[job.state]
    able = {
        "pause": bool(following & {JobState.PAUSING, JobState.PAUSED}),
        "resume": job.state is JobState.PAUSED,
        "retry": job.state in (JobState.FAILED, JobState.CANCELLED),
        "cancel": bool(following & {JobState.CANCELLING, JobState.CANCELLED}),
        "delete": job.state in TERMINAL,
    }
    return [name for name, is_able in able.items() if is_able]
