"""What is deleted while its page is open."""

from store.repositories import steering
from store.session import session_scope
from tests.api.conftest import Stage
from tests.pages.conftest import Visitor


def test_what_is_deleted_while_its_page_is_open_is_gone(member: Visitor, stage: Stage) -> None:
    job_id = stage.queued()
    events: list[str] = []
    with member.client.stream("GET", f"/jobs/{job_id}/live") as answer:
        for line in answer.iter_lines():
            if line.startswith("event:"):
                events.append(line.removeprefix("event: "))
            if line.startswith("data:") and events == ["parts"]:
                delete(stage, job_id)
    assert events == ["parts", "gone"]


def delete(stage: Stage, job_id: str) -> None:
    """Cancel and delete a job in one transaction, so that no look sees a part of it."""
    with session_scope(stage.sessions) as session:
        steering.request_cancel(session, job_id)
        steering.delete_job(session, job_id)
