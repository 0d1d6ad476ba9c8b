"""How teams post, find and steer groups of jobs."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from api.errors import ConflictError, InvalidInputError, NotFoundError, TooManyRequestsError
from api.http.paging import parse_cursor, unknown_cursor
from api.services import posting
from api.services import steering as jobs_steering
from api.services.grid import Cell, cells, said_of_grid
from api.services.quotas import check_queued
from axformer.wire.groups import GroupCreate
from store.errors import IllegalTransitionError
from store.ids import GROUP_PREFIX
from store.page import Page
from store.repositories import groups as repository
from store.repositories import steering
from store.repositories.audit import Actor, note
from store.repositories.groups import CreatedGroup, NewGroup
from store.repositories.jobs import NewJob, create_jobs
from store.settings import Settings
from store.states import JobState
from store.storage.storage import Storage
from store.tables.groups import Group


def submit(session: Session, settings: Settings, actor: Actor, body: GroupCreate, key: str | None) -> CreatedGroup:
    """Queue all jobs of a group or none, or find the group that a request with the same idempotency key created.

    Raises:
        InvalidInputError: a reference or a knob cannot be used, or the key came with another body before.
        TooManyRequestsError: the team would have more queued jobs than it may have.
        ConflictError: the team stores as many bytes as it may store.
    """
    body_sha256 = hashlib.sha256(body.model_dump_json(exclude_defaults=True).encode()).digest()
    grid = {"sets": [one.name for one in body.sets], "settings": [one.name for one in body.settings]}
    new = NewGroup(actor.team_id, body.name, grid, key, body_sha256 if key is not None else None)
    created = repository.create_group(session, new)
    if not created.is_new:
        if created.group.body_sha256 != body_sha256:
            raise posting.reused_key(key, created.group.id)
        return created
    posted = list(cells(body))
    _check_token(body, posted)
    create_jobs(session, [_new_job(settings, created.group, cell) for cell in posted])
    _check_uploads(session, actor.team_id, posted)
    try:
        check_queued(session, actor.team_id, added=len(posted))
    except TooManyRequestsError as error:
        raise _too_large(error, len(posted)) from None
    note(session, actor, "group.create", created.group.id)
    return created


def _new_job(settings: Settings, group: Group, cell: Cell) -> NewJob:
    try:
        return posting.new_job(settings, group.team_id, cell.body, posting.InGroup(group.id, cell.place))
    except InvalidInputError as error:
        raise said_of_grid(error, cell) from None


def _check_uploads(session: Session, team_id: str, posted: Sequence[Cell]) -> None:
    """Check each upload once, however many cells name it."""
    named = {upload_id: (pointer, cell) for cell in posted for pointer, upload_id in posting.uploads_of(cell.body)}
    for upload_id, (pointer, cell) in named.items():
        try:
            posting.check_upload(session, team_id, pointer, upload_id)
        except InvalidInputError as error:
            raise said_of_grid(error, cell) from None


def _check_token(body: GroupCreate, posted: Sequence[Cell]) -> None:
    if body.hub_token is not None and all(cell.body.hub_token is None for cell in posted):
        raise posting.unused_token()


def find(session: Session, team_id: str, group_id: str) -> Group:
    """The team's group with this id.

    Raises:
        NotFoundError: the team has none.
    """
    group = repository.find_group(session, group_id, team_id) if group_id.isprintable() else None
    if group is None:
        detail = f"your team has no group '{group_id}'; GET /v1/groups lists those there are"
        raise NotFoundError(detail, code="group_not_found")
    return group


def cancel(session: Session, actor: Actor, group: Group) -> None:
    """Cancel all jobs of a group that have not ended; the others stay unchanged."""
    outcomes = steering.cancel_jobs(session, repository.jobs_of(session, group.id))
    note(session, actor, "job.cancel", *(job.id for job, error in outcomes if error is None))


def retry(session: Session, storage: Storage, actor: Actor, group: Group) -> None:
    """Queue the failed and cancelled jobs of a group from scratch; the others stay unchanged.

    Raises:
        TooManyRequestsError: the team would have more queued jobs than it may have.
        ConflictError: there is no room for results, or someone else has retried one at this moment.
    """
    ended = [job for job in repository.jobs_of(session, group.id) if job.state in (JobState.FAILED, JobState.CANCELLED)]
    jobs_steering.retry_all(session, storage, actor, ended)


def list_groups(session: Session, team_id: str, *, limit: int, after: str | None) -> Page[Group]:
    """The team's groups, newest first.

    Raises:
        InvalidInputError: ``after`` names no group.
    """
    last = None
    if after is not None:
        group_id, created_at = parse_cursor(after, GROUP_PREFIX)
        known = repository.find_group(session, group_id, team_id) if created_at is None else None
        if created_at is None and known is None:
            raise unknown_cursor(after)
        last = known or Group(id=group_id, created_at=created_at)
    return repository.list_groups(session, team_id, limit=limit, after=last)


def delete(session: Session, actor: Actor, group: Group) -> list[str]:
    """Remove a group with all its jobs, and return their ids; the caller removes their files after the commit.

    Raises:
        ConflictError: a job has not ended.
    """
    ids = [job.id for job in repository.jobs_of(session, group.id)]
    for job_id in ids:
        try:
            steering.delete_job(session, job_id)
        except NoResultFound:  # deleted in the meantime
            continue
        except IllegalTransitionError as error:
            detail = f"{group.id}: {error}; cancel the group, or wait for its end"
            raise ConflictError(detail, code="wrong_state") from None
    repository.remove_group(session, group)
    note(session, actor, "job.delete", *ids)
    note(session, actor, "group.delete", group.id)
    return ids


def _too_large(error: TooManyRequestsError, cells: int) -> TooManyRequestsError:
    """Turn the refusal of a group's jobs into one of the group."""
    used, limit = error.figures["used"], error.figures["limit"]
    detail = f"your team has {used} queued jobs and may have {limit}, and the group has {cells}"
    detail += "; wait until some have started, post a smaller group, or ask the operator for a higher limit"
    return replace(error, detail=detail)
