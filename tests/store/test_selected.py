"""What is read of a job: its report may name every neuron of a model, so only who wants the report itself reads it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from store.repositories import claims, jobs, leases, moves, retention, steering, trials
from store.repositories.queue import waiting_jobs
from store.session import Sessions, session_scope
from store.states import JobState
from store.tables.jobs import Job
from tests.statements import reads_report, said_to
from tests.store.makers import Makers, claim

FIGURES = {"validation": {"loss": 0.4}, "test": None, "parameters": 100, "bytes": 40, "latency_ms": 2.0}
REPORT = {
    "base": FIGURES,
    "pruned": FIGURES | {"parameters": 50},
    "comparison": {"validation": None},
    "finding": {"verdict": "gain"},
    "estimated_speedup": 2.0,
    "seconds": 3.0,
    "finetune": None,
    "removed": ["layer.0.ffn", "layer.1.attention.head.3"],
    "hard_attention": [1],
    "path": [{"seq": 3}],
    "config": {"confirm": 0.5},
    "environment": {"torch": "2"},
}


@pytest.fixture
def done(sessions: Sessions, make: Makers) -> Job:
    """A job that has succeeded."""
    with session_scope(sessions) as session:
        jobs.create_job(session, make.job())
    job = claim(sessions)
    with session_scope(sessions) as session:
        for state in (JobState.VALIDATING, JobState.RUNNING, JobState.PACKAGING):
            leases.set_state(session, job.id, job.fence, state)
        return leases.finish_succeeded(session, job.id, job.fence, REPORT, [])


def test_what_is_shown_of_a_report_is_kept_beside_it(sessions: Sessions, done: Job) -> None:
    shown = {
        name: value
        for name, value in REPORT.items()
        if name not in ("comparison", "removed", "hard_attention", "path", "config", "environment")
    }
    with session_scope(sessions) as session:
        found = jobs.find_job(session, done.id, done.team_id)
        assert found is not None
        assert found.summary == shown | {"removed_count": 2, "hard_attention_count": 1}
        assert found.report == {name: value for name, value in REPORT.items() if name != "path"}
        assert found.path == REPORT["path"]


READS: dict[str, Callable[[Session, Job], object]] = {
    "list": lambda session, job: jobs.list_jobs(session, job.team_id, limit=10).items,
    "find": lambda session, job: jobs.find_job(session, job.id, job.team_id),
    "lock": lambda session, job: moves.lock_job(session, job.id),
    "standings": lambda session, job: jobs.find_standings(session, [job.id]),
    "line": lambda session, job: waiting_jobs(session),
    "claim": lambda session, job: claims.claim_next(session, "worker", 60),
    "slices": lambda session, job: claims.may_others_go_first(session, job.id),
    "retention": lambda session, job: retention.forget_old_events(session, timedelta(0)),
    "removal": lambda session, job: retention.remove_old_jobs(session, timedelta(0)),
    "deletion": lambda session, job: steering.delete_job(session, job.id),
}


@pytest.mark.parametrize("name", READS)
def test_nobody_who_does_not_want_the_report_reads_it(sessions: Sessions, done: Job, name: str) -> None:
    with session_scope(sessions) as session, said_to(session.get_bind()) as said:
        READS[name](session, done)
    assert said
    assert [statement for statement in said if reads_report(statement)] == []


def test_a_life_of_a_job_never_reads_its_report(sessions: Sessions, make: Makers) -> None:
    with session_scope(sessions) as session, said_to(session.get_bind()) as said:
        job = jobs.create_job(session, make.job()).job
        for _ in range(2):
            claimed = claims.claim_next(session, "worker", 60)
            assert claimed is not None
            leases.finish_failed(session, job.id, claimed.fence, {"code": "x", "message": "", "retryable": True})
            steering.retry_job(session, job.id)
        claimed = claims.claim_next(session, "worker", 60)
        assert claimed is not None
        for state in (JobState.VALIDATING, JobState.RUNNING, JobState.PACKAGING):
            leases.set_state(session, job.id, claimed.fence, state)
        leases.finish_succeeded(session, job.id, claimed.fence, REPORT, [])
        trials.create_export(session, make.job(exported_from=job.id, upto=0), {})
    assert [statement for statement in said if reads_report(statement)] == []
