"""Common parts of routes that create jobs: the idempotency key and the answer."""

from typing import Annotated

from fastapi import BackgroundTasks, Header, Response
from sqlalchemy.orm import Session

from api.resources import Resources
from api.services import posting
from api.views.jobs import job_path, job_read
from store.repositories.audit import note
from store.repositories.jobs import Created
from store.repositories.keys import Caller

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description="Any text of your own. The same key with the same body makes one job, however often it is sent.",
        examples=["nightly-2026-11-21"],
    ),
]


def answer_of_posting(
    created: Created, session: Session, caller: Caller, resources: Resources, after_commit: BackgroundTasks
) -> Response:
    """The answer to a request that created a job; a repeated request gets the first answer again."""
    headers = {"Location": job_path(created.job.id)}
    if created.is_new:
        text = job_read(created.job).model_dump_json()
        posting.remember_answer(created.job, text)
        note(session, caller, "job.create", created.job.id)
        after_commit.add_task(resources.wakeup.wake)
    else:
        text = created.job.first_answer or ""
        headers["Idempotent-Replayed"] = "true"
    return Response(text, 202, headers, media_type="application/json")
