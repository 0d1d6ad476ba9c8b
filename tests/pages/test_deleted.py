"""What is deleted while its page is open."""

from collections.abc import Sequence

import pytest
from fastapi.testclient import TestClient

from store.repositories import groups, steering
from store.session import session_scope
from tests.api.conftest import Crew, Stage
from tests.pages.conftest import Visitor
from tests.pages.test_group import GRID


@pytest.mark.parametrize("kind", ["jobs", "groups"])
def test_what_is_deleted_while_its_page_is_open_is_gone(
    member: Visitor, stage: Stage, client: TestClient, crew: Crew, kind: str
) -> None:
    if kind == "jobs":
        id = stage.queued()
        jobs = [id]
    else:
        group = client.post("/v1/groups", json=GRID, headers=crew.headers).json()
        id, jobs = group["id"], [cell["job"] for cell in group["cells"]]
    events: list[str] = []
    with member.client.stream("GET", f"/{kind}/{id}/live") as answer:
        for line in answer.iter_lines():
            if line.startswith("event:"):
                events.append(line.removeprefix("event: "))
            if line.startswith("data:") and events == ["parts"]:
                delete(stage, jobs)
    assert events == ["parts", "gone"]


def delete(stage: Stage, jobs: Sequence[str]) -> None:
    """Cancel and delete jobs, and groups without any, in one transaction, so that no look sees a part of it."""
    with session_scope(stage.sessions) as session:
        for job_id in jobs:
            steering.request_cancel(session, job_id)
            steering.delete_job(session, job_id)
        groups.remove_empty_groups(session)
