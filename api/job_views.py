"""Jobs as they are shown: what is public, with links, and without what might be secret."""

from collections.abc import Mapping, Sequence
from typing import Any

from api.paging import cursor_behind
from api.queue_views import place_read
from api.references import shown
from api.schemas.bulk import BulkErrorRead, BulkItemRead, BulkRead
from api.schemas.jobs import JobErrorRead, JobLinks, JobRead, PassRead, ProgressRead, ReportRead
from api.schemas.page import PageRead
from api.schemas.webhooks import Webhook
from api.services.queue import Place
from api.services.steering import BulkOutcome
from store.errors import IllegalTransitionError
from store.page import Page
from store.tables.jobs import Job

_NOT_FOUND = "your team has no job '{}' that fits, or it is a pass of another job"

Passes = Mapping[str, Sequence[Job]]
"""The passes of each job that has any, by its id."""


def job_path(job_id: str) -> str:
    """The address of a job."""
    return f"/v1/jobs/{job_id}"


def job_read(job: Job, passes: Passes, place: Place | None = None) -> JobRead:
    """A job as it is shown, given the passes of those that have any, and perhaps its place in the queue."""
    mine = passes.get(job.id)
    return JobRead(
        id=job.id,
        parent=job.parent_id,
        group=job.group_id,
        exported_from=job.exported_from,
        upto=job.upto,
        name=job.name,
        state=job.state,
        status_reason=job.status_reason,
        checkpoint=_reference(job.checkpoint),
        validation=_reference(job.validation),
        test=_reference(job.test) if job.test else None,
        train=_reference(job.train) if job.train else None,
        finetune=job.finetune,
        preset=job.preset,
        config=job.config,
        priority=job.priority,
        device=job.device,
        forms=job.forms,
        labels=job.labels,
        webhook=Webhook(**job.webhook | {"url": shown(job.webhook["url"])}) if job.webhook else None,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        error=JobErrorRead.model_validate(job.error, extra="ignore") if job.error else None,
        progress=_progress(job.progress) if mine is None else _progress_of_all(mine),
        passes=None if mine is None else [_pass_read(one) for one in mine],
        report=_report(job.report) if job.report else None,
        queue=place_read(place) if place else None,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        cancel_requested_at=job.cancel_requested_at,
        links=_links(job_path(job.id)),
    )


def jobs_page(page: Page[Job], passes: Passes) -> PageRead[JobRead, str]:
    """Jobs as a page, given the passes of those that have any."""
    following = cursor_behind(page.items[-1]) if page.items else None
    jobs = [job_read(job, passes) for job in page.items]
    return PageRead[JobRead, str](data=jobs, has_more=page.has_more, next=following)


def bulk_read(outcome: BulkOutcome) -> BulkRead:
    """What became of each job of a bulk request, by id."""
    items = [_bulk_item(job, refusal) for job, refusal in outcome.jobs]
    items += [
        BulkItemRead(id=job_id, state=None, error=BulkErrorRead(code="job_not_found", detail=_NOT_FOUND.format(job_id)))
        for job_id in outcome.unknown
    ]
    return BulkRead(data=items, has_more=outcome.has_more)


def _bulk_item(job: Job, refusal: IllegalTransitionError | None) -> BulkItemRead:
    error = None if refusal is None else BulkErrorRead(code="wrong_state", detail=f"{job.id}: {refusal}")
    return BulkItemRead(id=job.id, state=job.state, error=error)


def _reference(reference: dict[str, Any]) -> dict[str, Any]:
    return reference | {"uri": shown(reference["uri"])}


def _pass_read(one: Job) -> PassRead:
    return PassRead(
        id=one.id,
        order=one.config["order"],
        state=one.state,
        status_reason=one.status_reason,
        progress=_progress(one.progress),
        url=job_path(one.id),
    )


def _progress(progress: dict[str, Any] | None) -> ProgressRead | None:
    return ProgressRead.model_validate(progress, extra="ignore") if progress else None


def _progress_of_all(passes: Sequence[Job]) -> ProgressRead | None:
    """How far the passes are together. Those that have not begun will have at least the trials of any other at first."""
    begun = [one.progress for one in passes if one.progress]
    if not begun:
        return None
    done = sum(progress["done"] for progress in begun)
    known = sum(progress["known"] for progress in begun) + (len(passes) - len(begun)) * begun[0]["known_at_first"]
    seconds = sum(progress["seconds"] for progress in begun)
    best = min(begun, key=lambda progress: progress["min_loss"])
    return ProgressRead(
        done=done,
        known=known,
        seconds=seconds,
        seconds_left=(known - done) * seconds / done if done else None,
        base_loss=begun[0]["base_loss"],
        min_loss=best["min_loss"],
        operations=best.get("operations"),
        estimated_speedup=best.get("estimated_speedup"),
    )


def _report(report: dict[str, Any]) -> ReportRead:
    return ReportRead(
        base=report["base"],
        pruned=report["pruned"],
        finding=report.get("finding"),
        one_position_ms=report.get("one_position_ms"),
        removed_count=len(report["removed"]),
        estimated_speedup=report.get("estimated_speedup"),
        seconds=report.get("seconds"),
        orders=report.get("orders"),
        finetune=report.get("finetune"),
    )


def _links(path: str) -> JobLinks:
    names = ("trace", "path", "events", "artifacts", "deliveries", "cancel", "pause", "resume", "retry")
    return JobLinks(self=path, **{name: f"{path}/{name}" for name in names})
