"""The work that a job is, by which run times are compared."""

from dataclasses import replace

import pytest

from axformer.wire.states import JobKind
from store.repositories import jobs, queue
from store.session import Sessions, session_scope
from store.tables.jobs import work_of
from tests.store.makers import Makers


@pytest.mark.parametrize(
    ("kind", "config", "work"),
    [
        (JobKind.PASS, {}, "axformer"),
        (JobKind.PASS, {"method": "compress"}, "compress"),
        (JobKind.EXPORT, {"method": "compress"}, "export"),
        (JobKind.ANALYSIS, {}, "analysis"),
    ],
)
def test_the_work_of_a_job_is_the_same_to_the_database(
    sessions: Sessions, make: Makers, kind: JobKind, config: dict[str, object], work: str
) -> None:
    with session_scope(sessions) as session:
        job = jobs.create_job(session, replace(make.job(config=config), kind=kind)).job
        assert work_of(job) == work
    with session_scope(sessions) as session:
        assert [one.work for one in queue.waiting_jobs(session)] == [work]
