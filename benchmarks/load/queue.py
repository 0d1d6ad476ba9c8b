"""A long queue of many teams, made through the store: what the load is put on."""

from dataclasses import dataclass

from sqlalchemy import text

from axformer.plan.trial import Phase, Trial, Verdict
from axformer.wire.run import read_run
from store.repositories import claims, jobs, leases
from store.repositories.jobs import NewJob
from store.repositories.keys import create_key
from store.repositories.teams import create_team
from store.session import Sessions, session_scope
from store.states import JobState
from store.tables.jobs import Job

TEAMS = 20
JOBS_OF_A_TEAM = 100
LONG_TRACE = 50_000
"""Trials of one running job: a large encoder, neuron by neuron."""
_BATCH = 5_000
_LEASE_SECONDS = 3600.0
_TABLES = ("jobs", "events", "outbox", "trials")


@dataclass(frozen=True)
class LoadedQueue:
    """What callers need to know of it."""

    keys: list[str]
    """One a team."""
    queued: list[tuple[str, str]]
    """Job and key of its team."""
    long: tuple[str, str]
    """The job with the long trace, and its team's key."""


def fill_queue(sessions: Sessions) -> LoadedQueue:
    """Make the teams, their queued jobs, and the running job with the long trace."""
    with session_scope(sessions) as session:
        teams = [create_team(session, f"team-{number}").id for number in range(TEAMS)]
        keys = [create_key(session, team, "load").text for team in teams]
        long = jobs.create_job(session, new_job(teams[0], "long")).job.id
    write_long_trace(sessions, long)
    queued = []
    for number in range(JOBS_OF_A_TEAM):
        with session_scope(sessions) as session:
            for team, key in zip(teams, keys, strict=True):
                queued.append((jobs.create_job(session, new_job(team, f"job {number}")).job.id, key))
    return LoadedQueue(keys, queued, (long, keys[0]))


_REFERENCES = {"checkpoint": "hf://acme/bert-base-uncased-finetuned", "validation": "s3://acme/validation.jsonl"}
_SPEC = read_run({**_REFERENCES, "preset": "paper"}).settled().stored()


def new_job(team_id: str, name: str) -> NewJob:
    """A job as the API makes it."""
    return NewJob(team_id=team_id, name=name, spec=_SPEC, labels={"project": "load"})


def write_long_trace(sessions: Sessions, job_id: str) -> None:
    """Claim the only queued job and write its trials."""
    with session_scope(sessions) as session:
        job = claims.claim_next(session, "load:0", _LEASE_SECONDS)
    assert job is not None
    assert job.id == job_id
    begin(sessions, job)
    for first in range(0, LONG_TRACE, _BATCH):
        with session_scope(sessions) as session:
            leases.add_trials(session, job_id, job.fence, [long_trial(seq) for seq in range(first, first + _BATCH)], {})


def begin(sessions: Sessions, job: Job) -> None:
    """Take a claimed job to where its trials begin."""
    for state in (JobState.VALIDATING, JobState.RUNNING):
        with session_scope(sessions) as session:
            leases.set_state(session, job.id, job.fence, state)


def bytes_of(sessions: Sessions) -> dict[str, float]:
    """Bytes of PostgreSQL's disk a row of each table, with indices."""
    found = {}
    with session_scope(sessions) as session:
        for table in _TABLES:
            size = session.scalars(text(f"SELECT pg_total_relation_size('{table}')")).one()
            rows = session.scalars(text(f"SELECT count(*) FROM {table}")).one()  # noqa: S608 - names from above
            found[table] = size / rows if rows else 0.0
    return found


def long_trial(seq: int) -> Trial:
    """A trial of a large encoder."""
    return Trial(
        seq=seq,
        phase=Phase.NEURONS if seq else Phase.BASE,
        element=f"layer.{seq % 24}.ffn.neurons.{seq}" if seq else None,
        loss=0.3 + seq * 1e-7,
        loss_is_bound=False,
        helped=seq % 500 if seq else None,
        samples=1000,
        total=1000,
        min_loss=0.3,
        verdict=Verdict.REJECT if seq else Verdict.BASE,
        precision="float32",
        parameters=2048,
        seconds=seq * 0.05,
    )
