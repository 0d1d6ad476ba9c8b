"""Jobs as the API shows them: the public fields, with links and without secrets."""

from typing import Any, TypeVar

from api.http.paging import cursor_behind
from api.services.estimates import WaitingTime
from api.services.queue import Queue
from axformer.wire.analysis import AnalysisAsked
from axformer.wire.base import PageRead, Schema
from axformer.wire.devices import MemoryNeed
from axformer.wire.handovers import HandoverRead
from axformer.wire.jobs import JobErrorRead, JobLinks, JobRead, ProgressRead, ReportRead
from axformer.wire.queue import PlaceRead, QueuedJobRead, QueueRead
from axformer.wire.states import JobKind
from axformer.wire.webhooks import Webhook
from store.page import Page
from store.references import shown
from store.repositories.labels import labelled_of
from store.repositories.queue import Waiting
from store.summaries import outcome_of
from store.tables.base import Base
from store.tables.jobs import Job

S = TypeVar("S", bound=Schema)


def fields_of(kind: type[S], row: Base, **more: Any) -> S:
    """A row as it is shown: its fields of the same names, and these."""
    same = (name for name in kind.model_fields if name not in more and hasattr(type(row), name))
    return kind(**{name: getattr(row, name) for name in same}, **more)


def job_path(job_id: str) -> str:
    """The address of a job."""
    return f"/v1/jobs/{job_id}"


def job_read(job: Job, place: PlaceRead | None = None) -> JobRead:
    """A job as the API shows it, optionally with its place in the queue."""
    return fields_of(
        JobRead,
        job,
        **_asked(job),
        memory=MemoryNeed.model_validate(job.memory) if job.memory else None,
        outcome=outcome_of(job.summary),
        webhook=Webhook(**job.webhook | {"url": shown(job.webhook["url"])}) if job.webhook else None,
        deliver=HandoverRead.model_validate(job.handover, extra="ignore") if job.handover else None,
        error=JobErrorRead.model_validate(job.error, extra="ignore") if job.error else None,
        progress=ProgressRead.model_validate(job.progress, extra="ignore") if job.progress else None,
        report=_report(job.summary) if job.summary and "findings" not in job.summary else None,
        labelled=labelled_of(job),
        findings=(job.summary or {}).get("findings"),
        queue=place,
        links=_links(job_path(job.id)),
    )


def jobs_page(page: Page[Job]) -> PageRead[JobRead, str]:
    """Jobs as a page."""
    following = cursor_behind(page.items[-1]) if page.items else None
    jobs = [job_read(job) for job in page.items]
    return PageRead[JobRead, str](data=jobs, has_more=page.has_more, next=following)


def _asked(job: Job) -> dict[str, Any]:
    """What a job was asked for, as it was posted and as it is meant."""
    sources = {part: _reference(reference) for part, reference in job.sources.items()}
    posted = job.run | sources
    named = {part: reference for part, reference in sources.items() if part in JobRead.model_fields}
    if job.kind is JobKind.ANALYSIS:
        asked = AnalysisAsked(reports=posted.get("reports"), rows=posted.get("rows"))
        config = {"max_length": posted.get("max_length")}
        return {**named, "posted": posted, "analysis": asked, "preset": "", "config": config, "forms": []}
    meant = {name: job.spec[name] for name in ("preset", "config", "finetune", "forms")}
    return {**named, "posted": posted, "head": posted.get("head"), "goal": posted.get("goal"), **meant}


def _reference(reference: dict[str, Any]) -> dict[str, Any]:
    return reference | {"uri": shown(reference["uri"])}


def _report(summary: dict[str, Any]) -> ReportRead:
    return ReportRead.model_validate(summary, extra="ignore")


def _links(path: str) -> JobLinks:
    return JobLinks(self=path, **{name: f"{path}/{name}" for name in JobLinks.model_fields if name != "self"})


def queue_read(queue: Queue) -> QueueRead:
    """The queue as it is shown."""
    return QueueRead(
        data=[_running(*entry) for entry in queue.active] + [_waiting(*entry) for entry in queue.waiting],
        counts=dict(queue.counts.items()),
        queued_of_all_teams=queue.queued_of_all_teams,
        workers_alive=sum(kind.alive for kind in queue.workers),
        workers_busy=sum(kind.busy for kind in queue.workers),
        workers=list(queue.workers),
        eta_method=queue.method,
        as_of=queue.as_of,
    )


def _running(job: Job, estimate: WaitingTime) -> QueuedJobRead:
    unplaced: dict[str, Any] = dict.fromkeys(PlaceRead.model_fields)
    unplaced["ends_in_seconds"] = estimate.ends
    return QueuedJobRead(id=job.id, name=job.name, state=job.state, device=job.device, **unplaced)


def _waiting(job: Waiting, place: PlaceRead) -> QueuedJobRead:
    return QueuedJobRead(id=job.job_id, name=job.name, state=job.state, device=job.device, **dict(place))
