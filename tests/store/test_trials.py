"""The trace comes back as it was written."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from axformer.plan.trial import Phase, Trial, Verdict
from store.repositories import jobs, leases
from store.repositories.trace_views import element_points, gone_neurons
from store.repositories.trials import all_trials, trials_after
from store.session import Sessions, session_scope
from store.tables.jobs import Job, TrialRow
from tests.store.makers import Makers, claim, reload

COUNTS = st.integers(0, 2**63 - 1)  # what a bigint holds
TRIALS = st.builds(
    Trial,
    seq=st.just(0),
    element=st.none() | st.text("layer.0:ä"),
    helped=st.none() | COUNTS,
    samples=COUNTS,
    total=COUNTS.filter(bool),
    precision=st.text("float32"),
    parameters=COUNTS,
)


@pytest.fixture
def held(sessions: Sessions, make: Makers) -> Job:
    """A job that a worker has just claimed."""
    with session_scope(sessions) as session:
        jobs.create_job(session, make.job())
    return claim(sessions)


def test_the_table_has_the_fields_of_a_trial_and_its_job_and_pass() -> None:
    assert set(TrialRow.__table__.columns.keys()) == {"job_id", *Trial.model_fields}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trials=st.lists(TRIALS, max_size=5))
def test_what_is_read_is_what_was_written(sessions: Sessions, held: Job, trials: list[Trial]) -> None:
    numbered = [trial.model_copy(update={"seq": seq}) for seq, trial in enumerate(trials)]
    with session_scope(sessions) as session:
        session.execute(delete(TrialRow))
        leases.add_trials(session, held.id, held.fence, numbered)
    with session_scope(sessions) as session:
        assert repr(list(all_trials(session, held.id, chunk=2))) == repr(numbered)  # repr: NaN equals itself


def test_a_batch_may_come_twice(sessions: Sessions, make: Makers, held: Job) -> None:
    with session_scope(sessions) as session:
        leases.add_trials(session, held.id, held.fence, [make.trial(seq) for seq in range(3)], {"done": 3})
    changed = make.trial(2, loss=9.0)
    with session_scope(sessions) as session:
        leases.add_trials(session, held.id, held.fence, [changed, make.trial(3)], {"done": 4})
    with session_scope(sessions) as session:
        assert list(all_trials(session, held.id, chunk=2)) == [make.trial(seq) for seq in range(4)]
    assert reload(sessions, held).progress == {"done": 4}


def test_pages_follow_each_other_without_gap(sessions: Sessions, make: Makers, held: Job) -> None:
    trials = [make.trial(seq) for seq in range(7)]
    with session_scope(sessions) as session:
        leases.add_trials(session, held.id, held.fence, trials)
    with session_scope(sessions) as session:
        first = trials_after(session, held.id, limit=4)
        second = trials_after(session, held.id, after=first.items[-1].seq, limit=4)
        assert (first.has_more, second.has_more) == (True, False)
        assert [*first.items, *second.items] == trials
        assert trials_after(session, held.id, limit=7).has_more is False


def test_of_many_neurons_those_that_are_gone_are_told_in_whichever_phase_they_were_tried(
    sessions: Sessions, held: Job, make: Makers
) -> None:
    tried = [
        (Phase.BASE, None, Verdict.BASE),
        (Phase.BLOCK, "layer.0.ffn", Verdict.REFINE),
        (Phase.NEURONS, "layer.0.ffn.neurons.0:6", Verdict.REJECT),
        (Phase.TRADE, "layer.0.ffn.neurons.0:6", Verdict.ACCEPT),
        (Phase.TRADE, "layer.0.ffn.neurons.6:12", Verdict.REJECT),
    ]
    trials = [
        make.trial(seq).model_copy(update={"phase": phase, "element": element, "verdict": verdict})
        for seq, (phase, element, verdict) in enumerate(tried)
    ]
    with session_scope(sessions) as session:
        leases.add_trials(session, held.id, held.fence, trials)
    with session_scope(sessions) as session:
        points, is_whole = element_points(session, held.id, most_neurons=2)
        assert ([point.seq for point in points], is_whole) == ([0, 1], False)
        assert gone_neurons(session, held.id, upto=None) == {0: [(0, 6)]}
        assert gone_neurons(session, held.id, upto=2) == {}
        points, is_whole = element_points(session, held.id, most_neurons=3)
        assert ([point.seq for point in points], is_whole) == ([0, 1, 2, 3, 4], True)
