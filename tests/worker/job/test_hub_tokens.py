"""The token that a job brings is sent to the hub, and told to nobody: no event, error, log, or process."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from pydantic import SecretStr
from sqlalchemy import update
from structlog.testing import capture_logs

from store.repositories.events import events_after
from store.repositories.jobs import hub_token_of
from store.session import session_scope
from store.signing import open_vault
from store.states import JobState
from store.tables.jobs import Job
from store.tables.teams import Team
from tests.loopback import Loopback
from tests.worker.conftest import Open, Post, Watch
from tests.worker.fetching.test_hub import Hub
from worker.base.context import WorkerContext
from worker.job.runner import run_job

NEVER = threading.Event()
TOKEN = "hf_canary_of_a_job"


@pytest.fixture
def hub() -> Iterator[Loopback]:
    with Loopback(Hub()) as hub:
        yield hub


def test_it_is_sent_to_the_hub_and_forgotten(
    context: WorkerContext, post: Post, watch: Watch, claim: Callable[[], Job], hub: Loopback, opened: Open
) -> None:
    settings = context.settings.model_copy(update={"hub_endpoint": hub.url})
    here = replace(context, settings=settings)
    job_id = post(checkpoint={"uri": "hf://org/gated"}, hub_token=open_vault(settings).lock(TOKEN))
    with capture_logs() as logs:
        job = claim()
        run_job(here, job, NEVER)
    assert [headers["authorization"] for *_, headers in hub.requests] == [f"Bearer {TOKEN}"] * len(hub.requests)
    assert hub.requests
    with session_scope(context.sessions) as session:
        events = [event.data for event in events_after(session, job_id, limit=100).items]
        assert hub_token_of(session, job_id) is None
    assert watch.job(job_id).state is JobState.FAILED
    assert "canary" not in repr((logs, events, vars(watch.job(job_id)), job))


@pytest.mark.parametrize(("grants", "sent"), [(["hf://acme", "s3://*"], False), (["hf://org"], True)])
def test_the_operators_is_sent_for_what_the_team_was_granted(
    context: WorkerContext, post: Post, claim: Callable[[], Job], hub: Loopback, grants: list[str], sent: bool
) -> None:
    given = {"hub_endpoint": hub.url, "hub_token": SecretStr(TOKEN)}
    here = replace(context, settings=context.settings.model_copy(update=given))
    post(checkpoint={"uri": "hf://org/gated"})
    with session_scope(context.sessions) as session:
        session.execute(update(Team).values(grants=grants))
    run_job(here, claim(), NEVER)
    assert {headers.get("authorization") for *_, headers in hub.requests} == {f"Bearer {TOKEN}" if sent else None}
