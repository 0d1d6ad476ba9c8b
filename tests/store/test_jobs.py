"""Jobs as their owners see them."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from store.errors import IllegalTransitionError
from store.repositories import jobs, leases
from store.repositories.events import events_after
from store.repositories.outbox import mark_sent, unsent_messages
from store.session import Sessions, session_scope
from store.states import JobState


def test_new_job_is_queued_with_event_and_message(sessions, make):
    with session_scope(sessions) as session:
        job = jobs.create_job(session, make.job()).job
    with session_scope(sessions) as session:
        assert [event.type for event in events_after(session, job.id, limit=10).items] == ["job.created"]
        assert [message.job_id for message in unsent_messages(session, 10)] == [job.id]
    assert job.state is JobState.QUEUED


def test_nothing_remains_of_a_job_that_was_rolled_back(sessions, make):
    with pytest.raises(ZeroDivisionError), session_scope(sessions) as session:
        jobs.create_job(session, make.job())
        raise ZeroDivisionError
    with session_scope(sessions) as session:
        assert unsent_messages(session, 10) == []
