"""A search of orders is one job with six passes: all their trials are kept, and one pass is shown."""

from dataclasses import replace

import pytest

from axformer.methods.axformer.orders import SEARCHED_ORDERS
from axformer.wire.kinds import JobKind
from store.passes import pass_count, work_of
from store.repositories import jobs, leases, queue, steering, trace_views, trials
from store.repositories.trials import all_trials, trials_after
from store.session import Sessions, session_scope
from store.states import JobState
from store.tables.jobs import Job
from tests.store.makers import Makers, claim, reload

SEARCH = {"order": "search"}
LENGTHS = (3, 4, 2)
"""Trials of the passes that have begun."""


@pytest.fixture
def search(sessions: Sessions, make: Makers) -> Job:
    """A search whose third pass runs; the losses of each pass are its own."""
    with session_scope(sessions) as session:
        jobs.create_job(session, make.job(config=SEARCH))
    held = claim(sessions)
    for number, length in enumerate(LENGTHS, 1):
        trials = [make.trial(seq, loss=10.0 * number + seq, seconds=float(number)) for seq in range(length)]
        with session_scope(sessions) as session:
            leases.add_trials(session, held.id, held.fence, trials, {"done": 1}, pass_number=number)
    return held


def losses(sessions: Sessions, job: Job, pass_number: int | None = None) -> list[float]:
    with session_scope(sessions) as session:
        return [one.loss for one in trials_after(session, job.id, limit=100, pass_number=pass_number).items]


def succeed(sessions: Sessions, job: Job, kept_pass: int) -> None:
    with session_scope(sessions) as session:
        for state in (JobState.VALIDATING, JobState.RUNNING, JobState.PACKAGING):
            leases.set_state(session, job.id, job.fence, state)
        leases.finish_succeeded(session, job.id, job.fence, {}, [], kept_pass=kept_pass)


def test_shown_is_the_pass_that_runs_and_then_the_one_that_was_kept(sessions: Sessions, search: Job) -> None:
    assert losses(sessions, search) == [30.0, 31.0]
    assert losses(sessions, search, pass_number=1) == [10.0, 11.0, 12.0]
    succeed(sessions, search, kept_pass=2)
    assert losses(sessions, search) == [20.0, 21.0, 22.0, 23.0]
    assert losses(sessions, search, pass_number=3) == [30.0, 31.0]


def test_a_worker_reads_the_trials_of_all_passes_in_the_order_in_which_they_were_made(
    sessions: Sessions, search: Job
) -> None:
    with session_scope(sessions) as session:
        found = [one.loss for one in all_trials(session, search.id, chunk=2)]
    assert found == [10.0 * number + seq for number, length in enumerate(LENGTHS, 1) for seq in range(length)]


def test_what_people_see_is_of_the_pass_that_is_shown(sessions: Sessions, search: Job) -> None:
    with session_scope(sessions) as session:
        totals = trace_views.trace_totals(session, search.id)
        assert (totals.trials, totals.seconds) == (2, 3.0)
        assert trace_views.trial_table(session, search.id, trace_views.WantedTrials(), offset=0, limit=9)[1] == 2
        assert [one.loss for one in trace_views.thinned_points(session, search.id, most=9)] == [30.0, 31.0]
        assert trace_views.standing_points(session, search.id) == [(0, 30.0)]
        assert [one.loss for one in trace_views.standing_trials(session, search.id)] == [30.0]
        points, is_whole = trace_views.element_points(session, search.id, most_neurons=9)
        assert ([one.loss for one in points], is_whole) == ([30.0, 31.0], True)


def test_a_batch_of_a_pass_may_come_twice(sessions: Sessions, make: Makers, search: Job) -> None:
    again = [make.trial(seq, loss=9.0) for seq in range(3)]
    with session_scope(sessions) as session:
        leases.add_trials(session, search.id, search.fence, again, pass_number=3)
    assert losses(sessions, search) == [30.0, 31.0, 9.0]


def test_a_retried_search_begins_with_its_first_pass(sessions: Sessions, search: Job) -> None:
    with session_scope(sessions) as session:
        leases.finish_failed(session, search.id, search.fence, {"code": "invalid_data", "message": "no rows"})
        steering.retry_job(session, search.id)
    with session_scope(sessions) as session:
        assert list(all_trials(session, search.id, chunk=9)) == []
    assert (reload(sessions, search).shown_pass, reload(sessions, search).progress) == (1, None)


def test_an_export_has_the_trials_of_the_pass_that_was_kept(sessions: Sessions, make: Makers, search: Job) -> None:
    succeed(sessions, search, kept_pass=2)
    with session_scope(sessions) as session:
        new = make.job(exported_from=search.id, upto=2)
        export = trials.create_export(session, new, {}).job
    assert losses(sessions, export) == [20.0, 21.0, 22.0]
    assert losses(sessions, export, pass_number=1) == [20.0, 21.0, 22.0]


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


def test_a_search_is_one_job_in_the_queue_whose_time_is_that_of_its_passes(sessions: Sessions, make: Makers) -> None:
    with session_scope(sessions) as session:
        for config in (SEARCH, {"order": "random"}, {}):
            jobs.create_job(session, make.job(config=config))
    with session_scope(sessions) as session:
        assert [one.passes for one in queue.waiting_jobs(session)] == [len(SEARCHED_ORDERS), 1, 1]

    held = claim(sessions)
    assert (held.config, pass_count(held)) == (SEARCH, 6)
    succeed(sessions, held, kept_pass=1)
    with session_scope(sessions) as session:
        seconds = reload(sessions, held).worker_seconds
        assert queue.recent_pass_seconds(session, 9) == {"axformer": [pytest.approx(seconds / 6)]}
