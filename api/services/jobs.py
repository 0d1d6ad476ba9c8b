"""How teams find and list their jobs."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from api.errors import FieldError, InvalidInputError, NoSuchObjectError
from api.http.paging import parse_cursor, unknown_cursor
from axformer.wire.states import JobKind, JobOutcome
from store.ids import JOB_PREFIX
from store.page import Page
from store.repositories import jobs as repository
from store.states import JobState
from store.tables.jobs import Job


def find(session: Session, team_id: str, job_id: str) -> Job:
    """The team's job with this id.

    Raises:
        NoSuchObjectError: the team has none.
    """
    job = repository.find_job(session, job_id, team_id) if job_id.isprintable() else None
    if job is None:
        raise no_job(job_id)
    return job


def no_job(job_id: str) -> NoSuchObjectError:
    """The error for a job that the team does not have."""
    return NoSuchObjectError(
        f"your team has no job '{job_id}'; GET /v1/jobs lists those there are", code="job_not_found"
    )


def list_jobs(
    session: Session,
    team_id: str,
    *,
    limit: int,
    after: str | None,
    states: Sequence[JobState],
    labels: Sequence[str],
    kinds: Sequence[JobKind] = (),
    text: str | None = None,
    outcome: JobOutcome | None = None,
) -> Page[Job]:
    """The team's jobs, newest first, in one of the states, of one of the kinds, and with all labels (written ``key:value``).

    With ``text``, only jobs whose name contains it or whose id begins with it; with ``outcome``, only succeeded jobs of which
    that became.

    Raises:
        InvalidInputError: ``after`` names no job, or a label has no colon.
    """
    last = _last_seen(session, team_id, after) if after is not None else None
    asked = {_label(text) for text in labels}
    wanted = dict(asked)
    if len(wanted) < len(asked):  # no job has two values of one label
        return Page([], has_more=False)
    return repository.list_jobs(
        session, team_id, limit=limit, after=last, states=states, kinds=kinds, labels=wanted, text=text, outcome=outcome
    )


def _last_seen(session: Session, team_id: str, after: str) -> Job:
    job_id, created_at = parse_cursor(after, JOB_PREFIX)
    if created_at is not None:
        return Job(id=job_id, created_at=created_at)
    job = repository.find_job(session, job_id, team_id)
    if job is None:
        raise unknown_cursor(after)
    return job


def _label(text: str) -> tuple[str, str]:
    key, colon, value = text.partition(":")
    if not colon or not text.isprintable():
        detail = f"label='{text}' is not of the form key:value"
        raise InvalidInputError(detail, errors=[FieldError(detail, parameter="label")])
    return key, value
