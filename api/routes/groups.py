"""``/v1/groups``: post a grid of jobs at once, and read the table of its results."""

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Query, Response
from sqlalchemy.orm import Session

from api.deps import CallerDep, ReadingDep, ResourcesDep, SessionDep, SettingsDep, StorageDep, WriterDep
from api.http.answers import as_json
from api.http.paging import LimitDep
from api.openapi import answers
from api.routes.posted import IdempotencyKey
from api.services import groups
from api.services.artifacts import discard
from api.views.groups import group_path, group_read, groups_page
from axformer.wire.groups import GroupCreate, GroupRead
from axformer.wire.page import PageRead
from store.repositories.groups import cells_of
from store.storage.storage import job_folder
from store.tables.groups import Group

router = APIRouter(prefix="/groups", tags=["groups"])


@router.post(
    "",
    summary="Post a group of jobs",
    status_code=202,
    response_model=GroupRead,
    responses=answers(202, "All its jobs are queued.", "group", 401, 409, 413, 422, 429),
)
def post_group(
    body: GroupCreate,
    caller: WriterDep,
    session: SessionDep,
    settings: SettingsDep,
    resources: ResourcesDep,
    response: Response,
    after_commit: BackgroundTasks,
    idempotency_key: IdempotencyKey = None,
) -> GroupRead:
    """Post a grid: each checkpoint of each set with each setting and each seed becomes a job. All are stored, or none.

    With an `Idempotency-Key` the request may be repeated after any failure. A known key creates nothing; the answer is the
    existing group, with `Idempotent-Replayed: true`. A key is known as long as its group exists.
    """
    created = groups.submit(session, settings, caller, body, idempotency_key)
    response.headers["Location"] = group_path(created.group.id)
    if created.is_new:
        after_commit.add_task(resources.wakeup.wake)
    else:
        response.headers["Idempotent-Replayed"] = "true"
    return _shown(session, created.group)


@router.get(
    "",
    summary="List groups",
    response_model=PageRead[GroupRead, str],
    responses=answers(200, "Your team's groups, newest first.", "groups", 401, 422),
)
def list_groups(
    caller: CallerDep,
    session: ReadingDep,
    limit: LimitDep,
    after: Annotated[str | None, Query(description="The `next` of the page before, or a group's id.")] = None,
) -> Response:
    """List your team's groups. A group is deleted with the last of its jobs."""
    page = groups.list_groups(session, caller.team_id, limit=limit.page, after=after)
    return as_json(groups_page(page, cells_of(session, [group.id for group in page.items])))


@router.get(
    "/{group_id}", summary="Look at a group", responses=answers(200, "The group, with its table.", "group", 401, 404)
)
def get_group(group_id: str, caller: CallerDep, session: ReadingDep) -> GroupRead:
    """Look at a group: how many of its jobs have ended, and their results as means with spreads and intervals."""
    return _shown(session, groups.find(session, caller.team_id, group_id))


@router.post(
    "/{group_id}/cancel",
    summary="Cancel the jobs of a group",
    status_code=202,
    responses=answers(202, "Its jobs are cancelled, or their workers are told to stop.", "group", 401, 404),
)
def cancel_group(group_id: str, caller: WriterDep, session: SessionDep) -> GroupRead:
    """Cancel all jobs of a group that have not ended. Repeating this changes nothing."""
    group = groups.find(session, caller.team_id, group_id)
    groups.cancel(session, caller, group)
    return _shown(session, group)


@router.post(
    "/{group_id}/retry",
    summary="Retry the jobs of a group",
    status_code=202,
    responses=answers(202, "The jobs are queued again.", "group", 401, 404, 409, 429),
)
def retry_group(
    group_id: str,
    caller: WriterDep,
    session: SessionDep,
    storage: StorageDep,
    resources: ResourcesDep,
    after_commit: BackgroundTasks,
) -> GroupRead:
    """Queue the failed and cancelled jobs of a group again from scratch. Succeeded jobs stay."""
    group = groups.find(session, caller.team_id, group_id)
    groups.retry(session, storage, caller, group)
    after_commit.add_task(resources.wakeup.wake)
    return _shown(session, group)


@router.delete(
    "/{group_id}",
    summary="Delete a group",
    status_code=204,
    responses=answers(204, "The group and its jobs are gone.", None, 401, 404, 409),
)
def delete_group(
    group_id: str, caller: WriterDep, session: SessionDep, storage: StorageDep, after_commit: BackgroundTasks
) -> None:
    """Delete a group whose jobs have all ended, with its jobs and everything that belongs to them."""
    for job_id in groups.delete(session, caller, groups.find(session, caller.team_id, group_id)):
        after_commit.add_task(discard, storage, job_folder(job_id))


def _shown(session: Session, group: Group) -> GroupRead:
    return group_read(group, cells_of(session, [group.id])[group.id])
