"""A process that says nothing is ended, and one that holds workers for too long; what is slow and honest is not."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from axformer.data.encoding import in_parts
from axformer.pulse import beat, felt_by
from axformer.wire.steps import Step, StepName
from store.repositories.teams import TeamLimits, set_limits
from store.session import Sessions, session_scope
from store.settings import Settings
from store.states import JobState
from store.tables.jobs import Job
from store.tables.teams import Team
from tests.tiny_models import save_tiny_checkpoint, write_rows
from tests.worker.conftest import Open, Post, Watch
from tests.worker.sandbox.rogue import SPEED, Act, Rogue, Voice, trial
from worker.base.context import WorkerContext, claim_job
from worker.job import time_slice
from worker.job.runner import run_job
from worker.sandbox import work as process
from worker.sandbox.messages import Alive, Suspended, TrialMade, Working
from worker.sandbox.sandboxes import Sandboxes

NEVER = threading.Event()
Run = Callable[..., Job]


@pytest.fixture
def run(context: WorkerContext, watch: Watch) -> Run:
    """Claims the next job with some settings changed, runs it by a rogue, and gives it as it is then."""

    def run_with(act: Act, **changes: object) -> Job:
        settings = context.settings.model_copy(update=changes)
        with Sandboxes(settings, Rogue(act)) as sandboxes:
            strange = replace(context, settings=settings, sandboxes=sandboxes)
            job = claim_job(strange)
            assert job is not None
            run_job(strange, job, NEVER)
        assert list(settings.work_dir.iterdir()) == []
        return watch.job(job.id)

    return run_with


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice, "_LEAST_SILENT_SECONDS", 0.0)


def is_silent_while_opening(voice: Voice) -> None:
    voice.behave_until_the_order()
    voice.hear(Suspended)  # which never comes


def is_silent_in_a_trial(voice: Voice) -> None:
    voice.behave_until_the_search()
    voice.say(TrialMade(trial=trial(0), speed=SPEED))
    voice.hear(Suspended)


def talks_for_ever(voice: Voice) -> None:
    voice.behave_until_the_search()
    while True:
        voice.say(Working(step=Step(name=StepName.RANKING, done=0, known=1)))


@pytest.mark.parametrize(
    ("act", "limit"),
    [
        (is_silent_while_opening, "silent_opening_seconds"),
        (is_silent_in_a_trial, "silent_seconds"),
        (talks_for_ever, "job_seconds"),
    ],
)
def test_a_process_that_says_nothing_or_never_ends_fails_its_job(run: Run, post: Post, act: Act, limit: str) -> None:
    post()
    job = run(act, **{limit: 0.3})
    assert job.error is not None
    assert (job.state, job.attempt, job.error["code"]) == (JobState.FAILED, 1, "took_too_long")
    assert not job.error["retryable"]


def test_the_lower_limit_counts_and_what_earlier_workers_took_is_in_it(
    run: Run, post: Post, team: Team, sessions: Sessions
) -> None:
    job_id = post()
    with session_scope(sessions) as session:
        set_limits(session, team.id, TeamLimits(seconds=60))
        session.get_one(Job, job_id).worker_seconds = 60.0
    job = run(talks_for_ever, job_seconds=3600.0)
    assert job.error is not None
    assert job.error["code"] == "took_too_long"
    assert (
        "the job has held workers for 60 s, the most that the operator allows a job of this team"
        in job.error["message"]
    )


def test_a_job_that_goes_on_saying_that_it_lives_ends_after_a_week_by_default(
    run: Run, post: Post, sessions: Sessions
) -> None:
    job_id = post()
    with session_scope(sessions) as session:
        session.get_one(Job, job_id).worker_seconds = 7 * 86_400.0
    job = run(talks_for_ever)
    assert job.error is not None
    assert job.error["code"] == "took_too_long"
    assert "for 604,800 s" in job.error["message"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("act", [is_silent_while_opening, is_silent_in_a_trial])
def test_a_silent_process_loses_its_job_to_those_that_wait_and_the_attempt_counts(
    run: Run, post: Post, watch: Watch, act: Act
) -> None:
    first, second = post(), post()
    job = run(act, slice_seconds=0.1)
    assert (job.id, job.state, job.attempt) == (first, JobState.QUEUED, 1)
    assert "said nothing" in (job.status_reason or "")
    assert run(act, slice_seconds=0.1).id == second, "the other one is next"


@pytest.mark.usefixtures("impatient")
def test_the_last_attempt_fails(run: Run, post: Post, sessions: Sessions) -> None:
    job_id, _ = post(), post()
    with session_scope(sessions) as session:
        session.get_one(Job, job_id).attempt = session.get_one(Job, job_id).max_attempts - 1
    job = run(is_silent_in_a_trial, slice_seconds=0.1)
    assert job.error is not None
    assert (job.id, job.error["code"]) == (job_id, "took_too_long")


@pytest.mark.usefixtures("impatient")
def test_a_silent_process_that_nobody_waits_behind_and_one_that_gives_signs_of_life_stay(
    run: Run, post: Post, watch: Watch
) -> None:
    gone = threading.Event()

    def is_slow(voice: Voice) -> None:
        voice.behave_until_the_search()
        for _ in range(44):
            gone.wait(0.05)
            voice.say(Alive())
        voice.say(TrialMade(trial=trial(3), speed=SPEED))  # which is wrong, and ends it

    post()
    job = run(is_slow, slice_seconds=0.05, silent_seconds=2.0)
    assert job.error is not None
    assert job.error["code"] == "unsafe_input"


def test_a_tokenizer_that_backtracks_is_ended(
    context: WorkerContext, opened: Open, post: Post, watch: Watch, tmp_path: Path
) -> None:
    """The regular expression stays below the library's limit at each place, and costs the square of a text's length."""
    checkpoint = save_tiny_checkpoint(tmp_path / "slow")
    file = checkpoint / "tokenizer.json"
    content = json.loads(file.read_text())
    pattern = {"Regex": "x{0,2000}x{0,2000}(?!x)x"}
    content["pre_tokenizer"] = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
    file.write_text(json.dumps(content))
    rows = [{"text": "x" * 600, "label": index % 2} for index in range(4)]
    write_rows(tmp_path / "slow.jsonl", rows)
    job_id = post(checkpoint={"uri": f"file://{checkpoint}"}, validation={"uri": f"file://{tmp_path / 'slow.jsonl'}"})
    strange = replace(context, settings=context.settings.model_copy(update={"silent_opening_seconds": 0.1}))
    job = claim_job(strange)
    assert job is not None
    run_job(strange, job, NEVER)
    error = watch.job(job_id).error
    assert error is not None
    assert error["code"] == "took_too_long"


def test_parts_change_nothing_in_an_encoding_and_each_gives_a_sign_of_life(opened: Open) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(opened.root / "checkpoint")
    texts = [f"word {number} " * (number % 7 + 1) for number in range(23)]
    beats: list[None] = []
    for second, options in (
        (None, {}),
        (texts[::-1], {"truncation": "only_second", "max_length": 20, "stride": 2, "return_overflowing_tokens": True}),
    ):
        whole = tokenizer(texts, second, **options)
        with felt_by(lambda: beats.append(None)):
            parts = in_parts(tokenizer, texts, second, part=5, **options)
        assert dict(parts) == dict(whole)
        rows = range(len(whole["input_ids"]))
        assert [parts.word_ids(row) for row in rows] == [whole.word_ids(row) for row in rows]
        assert [parts.sequence_ids(row) for row in rows] == [whole.sequence_ids(row) for row in rows]
    assert len(beats) == 2 * 5
    beat()
    assert len(beats) == 2 * 5, "nobody listens any more"


def test_a_real_pass_gives_signs_of_life_while_it_opens_and_measures(
    context: WorkerContext, post: Post, watch: Watch, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    told = []
    send = process._send
    monkeypatch.setattr(process, "_ALIVE_SECONDS", 0.0)
    monkeypatch.setattr(process, "_send", lambda lines, message: (told.append(message), send(lines, message))[1])
    job_id = post()
    job = claim_job(context)
    assert job is not None
    run_job(context, job, NEVER)
    assert watch.job(job_id).state is JobState.SUCCEEDED
    kinds = [message.type for message in told]
    assert "alive" in kinds[: kinds.index("opened")]
    assert "alive" in kinds[kinds.index("opened") : kinds.index("searched")]
