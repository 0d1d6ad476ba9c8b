"""Whatever a job's process says or leaves, the worker stores nothing that it should not, and ends the job cleanly."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from axformer.config import make_config
from axformer.errors import AxFormerError
from axformer.methods.axformer.progress import PassMeter
from axformer.plan.elements import Dimensions
from axformer.plan.trial import BlockLevels, ModelFigures, Phase, Verdict
from axformer.scores.certificate import certify_sheet
from axformer.wire.answer_sheet import SHEET, AnswerSheet
from axformer.wire.report import Report
from axformer.wire.steps import Step, StepName
from store.repositories import leases
from store.repositories.trials import all_trials
from store.session import Sessions, session_scope
from store.states import WORKING, JobState
from store.summaries import summary_of
from store.tables.jobs import Job
from tests.axformer.wire.test_bounds import Form
from tests.worker.conftest import Post, Watch, context, opened, post, settings, watch
from tests.worker.sandbox.rogue import HEADS, LAYERS, SPEED, WIDE, Act, Rogue, Voice, trial
from worker.base.context import WorkerContext, claim_job
from worker.job.failure import UNSAFE_INPUT
from worker.job.runner import run_job
from worker.sandbox.errors import SandboxError
from worker.sandbox.lines import LONGEST
from worker.sandbox.messages import Failed, Message, Searched, Suspended, Trained, TrialMade, Working
from worker.sandbox.sandbox import understood
from worker.sandbox.sandboxes import Sandboxes

__all__ = ["context", "opened", "post", "settings", "watch"]

NEVER = threading.Event()
WORDS = (
    "type",
    "tried",
    "trial",
    "speed",
    "opened",
    "notes",
    "shape",
    "refused",
    "error",
    "message",
    "report",
    "seq",
)
Run = Callable[..., Job]


@pytest.fixture
def run(context: WorkerContext, post: Post, watch: Watch) -> Run:
    """Runs a job whose process is a rogue, and gives the job as it is then."""

    def run_with(act: Act, stop: threading.Event = NEVER, **changes: object) -> Job:
        job_id = post(**changes)
        with Sandboxes(context.settings, Rogue(act)) as sandboxes:
            strange = replace(context, sandboxes=sandboxes)
            job = claim_job(strange)
            assert job is not None
            run_job(strange, job, stop)
        for place in (context.settings.work_dir, context.settings.ahead_dir):
            assert not place.exists() or list(place.iterdir()) == []
        return watch.job(job_id)

    return run_with


def says(line: bytes) -> Act:
    def act(voice: Voice) -> None:
        voice.behave_until_the_order()
        voice.lines.send(line)
        voice.hear(TrialMade)  # which never comes: until the worker has had enough

    return act


def tries(*trials: dict[str, object]) -> Act:
    """Opens a pass and says these as its trials, the last of which is wrong."""

    def act(voice: Voice) -> None:
        voice.behave_until_the_search()
        for number, changes in enumerate(trials):
            voice.say(TrialMade(trial=trial(number, **changes), speed=SPEED))
        voice.hear(TrialMade)

    return act


def figures(name: str) -> ModelFigures:
    return ModelFigures(metrics={name: 1.0}, parameters=1, encoder_parameters=1, operations=1, encoder_operations=1)


def leaves(*names: str, report: object = None, answers: str = "x") -> Act:
    """Ends a pass, and leaves files and a report of its own making."""

    def act(voice: Voice) -> None:
        voice.behave_until_the_search()
        voice.say(TrialMade(trial=trial(0), speed=SPEED))
        voice.say(Searched(note=None, kept=0, speed=SPEED))
        voice.say(Trained())
        voice.result.mkdir()
        for name in names:
            (voice.result / name).write_text(answers if name == SHEET else "x")
        voice.lines.send(json.dumps({"type": "published", "report": report}).encode())
        voice.hear(TrialMade)

    return act


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"no json",
        b"[]",
        b"\xff\xfe\x00",
        b'{"type": "tried"}',
        b'{"type": "restrictions", "refused": {}}',
        b'{"type": "opened", "notes": [], "shape": {"layers": 1e9, "heads": 1, "hidden_size": 1, "intermediate_size": 1}}',
        b'{"type": "refused", "error": "SystemExit", "message": "x"}',
        b'{"type": "refused", "error": "DataError", "message": "a\\u0000b"}',
        b'{"type": "refused", "error": "DataError", "message": "\\ud800"}',
        b'{"type": "refused", "error": "DataError", "message": "' + b"x" * 5000 + b'"}',
        b"[" * 100_000,
        b"x" * (LONGEST + 1),
    ],
    ids=range(13),
)
def test_a_line_that_is_no_message_fails_the_job(run: Run, line: bytes) -> None:
    job = run(says(line))
    assert job.error is not None
    assert (job.state, job.error["code"], job.error["retryable"]) == (JobState.FAILED, UNSAFE_INPUT, False)


@pytest.mark.parametrize(
    "trials",
    [
        ({"seq": 1},),
        ({"levels": (BlockLevels(leaving=(0,), divergences=(0.0, 1.0)),)},),
        ({"figures": figures("a b")},),
        ({}, {"figures": figures("loss")}),
        ({}, {"seq": 5}),
        ({}, {"seq": 0}),
        ({}, {"phase": Phase.BASE}),
        ({}, {"element": None}),
        ({}, {"element": "layer.2.ffn"}),
        ({}, {"element": "layer.01.ffn"}),
        ({}, {"element": "layer.1.attention.head.2"}),
        ({}, {"element": "layer.1.ffn.neurons.4:9"}),
        ({}, {"element": "layer.1.ffn.neurons.4:4"}),
        ({}, {"element": "layer.1.ffn.neurons." + "9" * 5000 + ":1"}),
        ({}, {"element": "../../etc/passwd"}),
        ({}, {"precision": "a\0b"}),
        ({}, {"precision": "x" * 100}),
        ({}, {"total": 2**31}),
        ({}, {"helped": 5}),
        ({}, {"helped": -1}),
        ({}, {"samples": 5}),
        ({}, {"parameters": 2**63}),
        ({"loss": float("inf")},),
        ({}, {"loss": float("nan"), "verdict": Verdict.ACCEPT}),
        ({}, {"seconds": float("inf")}),
    ],
)
def test_a_trial_that_cannot_be_is_not_stored(run: Run, watch: Watch, trials: tuple[dict[str, object], ...]) -> None:
    job = run(tries(*trials))
    assert job.error is not None
    assert (job.state, job.error["code"]) == (JobState.FAILED, UNSAFE_INPUT)
    assert len(watch.trials(job.id)) < len(trials)


def test_no_more_trials_are_taken_than_the_pass_can_have(run: Run, watch: Watch) -> None:
    most = PassMeter(Dimensions(LAYERS, HEADS, 4, WIDE), make_config("paper")).longest
    job = run(tries(*[{}] * (most + 1)))
    assert job.error is not None
    assert (job.state, job.error["code"]) == (JobState.FAILED, UNSAFE_INPUT)
    assert 0 < len(watch.trials(job.id)) <= most


def test_a_second_base_trial_is_not_stored(run: Run, sessions: Sessions) -> None:
    def act(voice: Voice) -> None:
        voice.behave_until_the_search()
        for _ in range(2):
            voice.say(TrialMade(trial=trial(0), speed=SPEED))
        voice.hear(TrialMade)

    job = run(act)
    assert job.error is not None
    assert (job.state, job.error["code"]) == (JobState.FAILED, UNSAFE_INPUT)
    with session_scope(sessions) as session:
        assert len(list(all_trials(session, job.id, chunk=9))) <= 1


@pytest.mark.parametrize("report", [None, {}, {"format": "axformer-report/2"}, {"a": "b\0c"}, {"a": float("nan")}])
def test_a_report_that_is_none_is_not_stored(run: Run, report: object) -> None:
    job = run(leaves("plan.json", report=report))
    assert job.error is not None
    assert (job.state, job.error["code"], job.report) == (JobState.FAILED, UNSAFE_INPUT, None)


def too_long() -> Iterator[tuple[str, dict[str, Any]]]:
    """Reports that are reports but for their length, and what the operator is told."""
    form = Form(Report)
    plain = form.minimal(form.whole)
    yield "'forms'", {**plain, "forms": [plain["base_form"]] * 60_000}
    point = form.minimal(form.defs["PathPoint"])
    yield "3 models in 'path' of 1 trials", {**plain, "path": [point] * 3}
    text = {"sentence": "x" * 4000, "data": None, "verdict": "gain", "advice": "x", "answers": "x"}
    longest = {f"{'x' * 500}{number}": 0.5 for number in range(32)}
    many = [{**plain["base_form"], "validation": longest, "test": longest, "confirming": longest}] * 16
    yield "its summary has more than", {**plain, "finding": text, "forms": many, "before_forms": many}


@pytest.mark.parametrize(("told", "report"), [pytest.param(*one, id=one[0]) for one in too_long()])
def test_a_report_that_is_too_long_is_not_stored(run: Run, told: str, report: dict[str, Any]) -> None:
    with capture_logs() as logs:
        job = run(leaves("plan.json", report=report))
    assert job.error is not None
    assert (job.state, job.error["code"], job.report, job.summary) == (JobState.FAILED, UNSAFE_INPUT, None, None)
    assert told in _reason(logs)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, None),
        ({"passed": 1}, "its answers give another certificate of compact: passed"),
        ({"kept": 2, "rows": 9000}, "its answers give another certificate of compact: rows, kept"),
        (None, "its answers are not valid"),
    ],
)
def test_a_certificate_is_computed_again_and_not_believed(
    run: Run, changes: dict[str, Any] | None, told: str | None
) -> None:
    row = {"id": "a", "place": 0, "inputs": {"text": "a"}, "before": 0}
    model = {"seq": 0, "form": "compact", "times": 2.0, "answers": {0: 1}}
    plain = {"task": "classification", "metric": "accuracy", "test": "exact", "classes": ["no", "yes"], "points": 1.0}
    sheet = AnswerSheet.model_validate(plain | {"rows": 50, "unlabelled": 50, "changed": [row], "models": [model]})
    certificate = certify_sheet(sheet, "compact", {}).model_dump(mode="json") | (changes or {})
    form = Form(Report)
    report = {**form.minimal(form.whole), "certificate": certificate}
    answers = "{}" if changes is None else sheet.model_dump_json()
    with capture_logs() as logs:
        job = run(leaves("plan.json", SHEET, report=report, answers=answers))
    if told is None:
        assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    else:
        assert (job.error or {}).get("code") == UNSAFE_INPUT
        assert told in _reason(logs)


def _reason(logs: Sequence[Mapping[str, Any]]) -> str:
    """What the operator is told of a process that misbehaved."""
    (reason,) = (line["reason"] for line in logs if line["event"] == "sandbox_misbehaved")
    return str(reason)


def test_lists_load_no_classes_of_a_comparison_but_the_first() -> None:
    lost = [{"name": str(number), "count": 1, "before": 1.0, "after": 0.0, "p_value": 0.1} for number in range(1000)]
    told = {"forms": [{"cost": {"classes": lost}}], "head": {"labels": ["a"]}}
    shown = summary_of(told)
    assert len(shown["forms"][0]["cost"]["classes"]) == 10
    assert len(lost) == 1000


def test_one_that_says_what_nobody_asked_for_fails_the_job(run: Run) -> None:
    def act(voice: Voice) -> None:
        voice.behave_until_the_search()
        voice.say(Suspended())
        voice.hear(TrialMade)

    job = run(act)
    assert job.error is not None
    assert job.error["code"] == UNSAFE_INPUT


def test_what_went_wrong_is_for_the_operator_alone(run: Run) -> None:
    def act(voice: Voice) -> None:
        voice.behave_until_the_order()
        voice.say(Failed(reason="unforeseen", detail="canary"))

    job = run(act)
    assert job.error is not None
    assert (job.error["code"], job.error["retryable"]) == ("internal_error", True)
    assert "canary" not in job.error["message"]


@pytest.mark.parametrize("is_open", [False, True])
def test_one_that_dies_is_an_attempt_lost(run: Run, context: WorkerContext, watch: Watch, is_open: bool) -> None:
    def act(voice: Voice) -> None:
        if is_open:
            voice.behave_until_the_search()
            voice.say(TrialMade(trial=trial(0), speed=SPEED))

    job = run(act)
    assert (job.state in WORKING, job.attempt, job.error) == (True, 1, None)
    assert watch.events(job.id)[-1] == "job.worker_lost"
    again = claim_job(context)
    assert again is not None
    assert (again.id, again.attempt) == (job.id, 2)


def test_one_that_dies_a_moment_before_its_worker_is_told_to_stop_costs_no_attempt(run: Run) -> None:
    stop = threading.Event()

    def act(voice: Voice) -> None:
        voice.behave_until_the_search()
        threading.Timer(0.2, stop.set).start()

    job = run(act, stop)
    assert (job.state, job.attempt, job.error) == (JobState.QUEUED, 0, None)


@given(
    st.binary(max_size=300)
    | st.text(max_size=300).map(str.encode)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_line_is_a_message_or_a_refusal(line: bytes) -> None:
    with suppress(SandboxError, AxFormerError):
        assert isinstance(understood(line), Message)


def test_however_often_a_process_says_what_it_does_the_database_is_asked_now_and_then(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Step] = []
    told = leases.set_step
    monkeypatch.setattr(leases, "set_step", lambda *to, **how: (written.append(to[-1]), told(*to, **how)))

    def act(voice: Voice) -> None:
        voice.behave_until_the_search()
        voice.say(TrialMade(trial=trial(0), speed=SPEED))
        for done in range(2000):
            voice.say(Working(step=Step(name=StepName.MOMENTS, done=done, known=2000)))
        voice.say(Failed(reason="unforeseen", detail=""))

    job = run(act)
    assert job.state is JobState.FAILED
    assert 1 <= len(written) < 500
    assert job.progress is not None
    assert job.progress["step"]["name"] == "moments"
