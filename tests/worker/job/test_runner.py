import hashlib
import json
import re
import shutil
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from axformer.config import make_config
from axformer.data.columns import DataSource
from axformer.plan.trial import Trial
from axformer.run import PruningRun
from axformer.wire.devices import Device
from axformer.wire.finetuning import make_settings
from axformer.wire.provenance import PROVENANCE, Envelope
from store.repositories import leases
from store.repositories.claims import claim_next
from store.repositories.events import events_after
from store.repositories.files import list_artifacts
from store.repositories.steering import request_cancel, request_pause, resume_job
from store.repositories.workers import note_worker
from store.session import Sessions, session_scope
from store.states import JobState
from store.storage.storage import LocalStorage, job_folder
from store.tables.files import Artifact
from store.tables.jobs import Job
from tests.runs import open_run
from tests.tiny_models import answered_rows, answering_model, tiny_rows, tiny_tokenizer, write_rows
from tests.worker.conftest import LONG_PASS, Open, Post, Watch
from tests.worker.unconfined import held
from worker.base.context import WorkerContext, claim_job
from worker.base.packing import ARCHIVE_NAME
from worker.job.ledger import Ledger
from worker.job.opening import BEGINS_ANEW
from worker.job.runner import run_job

Claim = Callable[[], Job]
NEVER = threading.Event()
FILES = {
    "README.md",
    "path.svg",
    "plan.json",
    "plan.svg",
    "report.html",
    "report.json",
    "trace.jsonl",
    "model/config.json",
    "model/model.safetensors",
    "model/tokenizer.json",
    "model/tokenizer_config.json",
}


CHECKPOINTS = "made/state/*/checkpoint-*/whole.json"
"""Of the trainings of a job, in its directory."""


def artifacts_of(context: WorkerContext, job_id: str) -> dict[str, Artifact]:
    with session_scope(context.sessions) as session:
        return {artifact.name: artifact for artifact in list_artifacts(session, job_id)}


def content_of(context: WorkerContext, artifact: Artifact) -> bytes:
    return b"".join(context.storage.read(job_folder(artifact.job_id), artifact.sha256))


def library_run(opened: Open, knobs: dict[str, Any]) -> PruningRun:
    """The same pass without any service, to its end; run once, for all that compare with it."""
    return _library_run(opened, json.dumps(knobs, sort_keys=True))


@cache
def _library_run(opened: Open, knobs: str) -> PruningRun:
    validation = DataSource(str(opened.root / "validation.jsonl"))
    run = open_run(opened.root / "checkpoint", validation, config=make_config("paper", json.loads(knobs)))
    for _ in run.trials():
        pass
    return run


def without_seconds(trials: list[Trial] | tuple[Trial, ...]) -> list[dict[str, Any]]:
    return [trial.model_dump(exclude={"seconds"}) for trial in trials]


def left_behind(context: WorkerContext, job_id: str) -> list[Path]:
    """What is still on the disk of a job that came to nothing."""
    places = [context.settings.work_dir, context.settings.storage_dir / job_folder(job_id)]
    return [path for place in places if place.exists() for path in place.iterdir()]


@contextmanager
def at_a_checkpoint(context: WorkerContext, job_id: str, act: Callable[[], None]) -> Iterator[None]:
    """Act as soon as there is a checkpoint to continue a job's training from, and let the training go no further."""
    with held(lambda: any(context.settings.work_dir.glob(f"{job_id}.*/{CHECKPOINTS}")), act):
        yield


def test_a_result_is_handed_out_in_the_forms_that_were_asked_for(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim
) -> None:
    job_id = post(forms=["compact", "zeroed"], knobs={"attention_top_k": None, "max_length": 5})
    run_job(context, claim(), NEVER)
    report = watch.job(job_id).report
    assert report is not None
    assert [(form["name"], form["made"]) for form in report["forms"]] == [
        ("compact", True),
        ("zeroed", True),
    ]
    names = set(artifacts_of(context, job_id))
    assert {"model/model.safetensors", "zeroed/model.safetensors"} <= names
    assert not any(name.startswith("hub/") for name in names)


def test_a_job_runs_from_references_to_artifacts(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open
) -> None:
    job_id = post(test={"uri": opened.uri("test.jsonl")}, knobs={"max_length": 5})
    run_job(context, claim(), NEVER)

    job = watch.job(job_id)
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    steps = ["created", "fetching", "fetched", "validating", "noted", "running", "packaging", "succeeded"]
    assert watch.events(job_id) == [f"job.{step}" for step in steps]
    artifacts = artifacts_of(context, job_id)
    contents = {name: content_of(context, artifact) for name, artifact in artifacts.items()}
    signed = Envelope.model_validate_json(contents[PROVENANCE]).statement
    assert {one["name"]: one["digest"]["sha256"] for one in signed["subject"]} == {
        name: hashlib.sha256(content).hexdigest() for name, content in contents.items() if name != PROVENANCE
    }
    assert job.progress is not None
    made_from = {
        one["name"]: one["digest"]["sha256"] for one in signed["predicate"]["buildDefinition"]["resolvedDependencies"]
    }
    assert made_from == job.progress["inputs"]
    assert signed["predicate"]["runDetails"]["metadata"]["invocationId"] == job.id
    assert FILES | {ARCHIVE_NAME} <= set(contents)
    for name, artifact in artifacts.items():
        assert (artifact.bytes, artifact.sha256) == (len(contents[name]), hashlib.sha256(contents[name]).hexdigest())
    written = json.loads(contents["report.json"])
    assert [point["seq"] for point in written["path"] if point["kept"]] == [written["path"][-1]["seq"]]
    assert watch.path(job_id) == written.pop("path")
    assert written == job.report
    assert job.report is not None
    assert job.report["pruned"]["test"] is not None
    assert job.report["names"].keys() == {"checkpoint", "validation", "test"}
    assert (job.report["names"]["checkpoint"], job.report["names"]["test"]) == (job.name, "test.jsonl")
    lines = contents["trace.jsonl"].decode().splitlines()
    assert [Trial.model_validate_json(line) for line in lines] == watch.trials(job_id)
    with tarfile.open(fileobj=BytesIO(contents.pop(ARCHIVE_NAME))) as archive:
        packed = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    assert packed == {name: content for name, content in contents.items() if name != PROVENANCE}
    assert job.progress["done"] == job.progress["known"] == len(lines)
    assert job.progress["operations"] == job.report["pruned"]["operations"]
    assert job.progress["estimated_speedup"] == job.report["estimated_speedup"]
    assert list(context.settings.work_dir.iterdir()) == []


def test_a_pass_that_stops_at_its_target_ends_with_all_that_a_job_has(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open
) -> None:
    knobs = {"target_size": 0.9, "tolerance": 0.2, "majority_fraction": 0.3}
    job_id = post(knobs=knobs)
    run_job(context, claim(), NEVER)

    job, alone = watch.job(job_id), library_run(opened, knobs)
    trials = watch.trials(job_id)
    assert without_seconds(trials) == without_seconds(alone.trace)
    assert len(trials) < len(library_run(opened, knobs | {"target_size": None}).trace)
    assert job.report is not None
    assert job.report["pruned"]["parameters"] <= 0.9 * job.report["base"]["parameters"]
    assert job.progress is not None
    assert job.progress["done"] == job.progress["known"] == len(trials)
    assert job.progress["seconds_left"] == 0
    with session_scope(context.sessions) as session:
        events = events_after(session, job_id, limit=100).items
    notes = [event.data["notes"] for event in events if event.type == "job.noted"]
    assert notes == [alone.notes, [alone.closing_note]]


def test_a_job_whose_worker_died_behind_its_target_measures_no_trial_again(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open
) -> None:
    knobs = {"target_size": 0.9, "tolerance": 0.2, "majority_fraction": 0.3}
    job_id, trace = post(knobs=knobs), library_run(opened, knobs).trace
    job = claim()
    died = Ledger(context.sessions, job.id, job.fence)
    for state in (JobState.VALIDATING, JobState.RUNNING):
        died.write(leases.set_state, state)
    died.write(leases.add_trials, trace, {})
    died.write(leases.release, "as if its lease had run out")

    run_job(context, claim(), NEVER)
    job = watch.job(job_id)
    assert job.state is JobState.SUCCEEDED
    assert watch.trials(job_id) == list(trace)
    assert job.progress is not None
    assert (job.progress["done"], job.progress["known"]) == (len(trace), len(trace))


LESSONS = {"epochs": 3, "learning_rate": 0.001, "batch_size": 5, "seed": 0}


@pytest.fixture
def undisturbed(opened: Open, tmp_path: Path) -> dict[str, Any]:
    """The report of a pass with training, without any service."""
    validation, lessons = (DataSource(str(opened.root / name)) for name in ("validation.jsonl", "train.jsonl"))
    how = make_settings(LESSONS)
    run = open_run(opened.root / "checkpoint", validation, train=lessons, finetune=how)
    for _ in run.trials():
        pass
    return run.publish(tmp_path / "undisturbed")


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "elsewhere"])
def test_a_job_that_is_paused_while_it_trains_continues_and_ends_as_if_undisturbed(
    context: WorkerContext,
    post: Post,
    watch: Watch,
    claim: Claim,
    opened: Open,
    undisturbed: dict[str, Any],
    elsewhere: bool,
) -> None:
    """On this machine it continues from its last checkpoint; elsewhere it begins anew, and says so."""
    job_id = post(train={"uri": opened.uri("train.jsonl")}, finetune=LESSONS)

    def pause() -> None:
        with session_scope(context.sessions) as session:
            request_pause(session, job_id)

    with at_a_checkpoint(context, job_id, pause):
        run_job(context, claim(), NEVER)
    assert (watch.job(job_id).state, watch.job(job_id).report) == (JobState.PAUSED, None)
    before = watch.trials(job_id)
    assert len(before) == undisturbed["trials"]
    (kept,) = left_behind(context, job_id)
    assert kept.name == f"{job_id}.kept"
    assert list(kept.glob(CHECKPOINTS))
    if elsewhere:
        shutil.rmtree(kept)

    with session_scope(context.sessions) as session:
        resume_job(session, job_id)
    run_job(context, claim(), NEVER)
    job = watch.job(job_id)
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    assert watch.trials(job_id) == before
    assert job.report is not None
    for told in (job.report, undisturbed):
        told["finetune"].pop("seconds")
    assert job.report["finetune"] == undisturbed["finetune"]
    assert job.report["pruned"]["validation"] == undisturbed["pruned"]["validation"]
    assert list(context.settings.work_dir.iterdir()) == []
    assert [note for note in watch.notes(job_id) if "begins anew" in note] == [BEGINS_ANEW] * elsewhere


def test_a_job_is_cancelled_while_it_trains(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open
) -> None:
    job_id = post(train={"uri": opened.uri("train.jsonl")}, finetune=LESSONS | {"epochs": 100, "batch_size": 1})

    def cancel() -> None:
        while (watch.job(job_id).progress or {}).get("seconds_left") != 0:
            threading.Event().wait(0.01)
        with session_scope(context.sessions) as session:
            request_cancel(session, job_id)

    watcher = watch.at_trial(job_id, 1, cancel)
    run_job(context, claim(), NEVER)
    watcher.join()
    assert watch.job(job_id).state is JobState.CANCELLED
    assert "job.packaging" not in watch.events(job_id)
    assert left_behind(context, job_id) == []


BAD = "bad.jsonl"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no rows"),
        (b"\xff\xfe\n", "UTF-8"),
        (b'{"sentence": "word1", "label": 0}\n', "no column 'text'"),
        (b'{"text": "word1", "label": "unheard of"}\n', "unheard of"),
        (b'{"text": "word1", "label": 7}\n', "7"),
        (b"{\n", "line 1"),
    ],
)
def test_data_that_does_not_fit_fails_the_job_in_the_owners_words(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / BAD).write_bytes(content)
    uri = f"file://{tmp_path / BAD}"
    job_id = post(validation={"uri": uri})
    run_job(context, claim(), NEVER)

    job = watch.job(job_id)
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert (job.error["code"], job.error["param"], job.error["retryable"]) == ("invalid_data", "validation", False)
    assert words in job.error["message"]
    assert str(context.settings.work_dir) not in job.error["message"]
    assert left_behind(context, job_id) == []


def test_a_model_worse_than_guessing_fails_the_job_unless_it_is_accepted(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, tmp_path: Path
) -> None:
    model = answering_model(2)
    model.save_pretrained(tmp_path / "model")
    tiny_tokenizer().save_pretrained(tmp_path / "model")
    data = write_rows(tmp_path / "swapped.jsonl", answered_rows(model, 40, (1, 0)))
    inputs = {"checkpoint": {"uri": f"file://{tmp_path / 'model'}"}, "validation": {"uri": f"file://{data}"}}
    job_id = post(**inputs)
    run_job(context, claim(), NEVER)

    error = watch.job(job_id).error
    assert error is not None
    assert (error["code"], error["param"], error["retryable"]) == ("poor_model", "validation", False)
    assert error["message"].startswith(f"data file 'file://{data}': the untouched model is worse than guessing")
    assert "accept_poor_model=true" in error["message"]
    assert watch.trials(job_id) == []

    job_id = post(**inputs, forms=["compact"], knobs={"accept_poor_model": True, "attention_top_k": None})
    run_job(context, claim(), NEVER)
    job = watch.job(job_id)
    assert job.state is JobState.SUCCEEDED
    assert job.progress is not None
    assert job.progress["first_look"].startswith("40 rows, ")
    with session_scope(context.sessions) as session:
        events = events_after(session, job_id, limit=100).items
    assert "another order" in next(event.data["notes"][0] for event in events if event.type == "job.noted")


def test_a_checkpoint_that_cannot_be_used_fails_the_job(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, tmp_path: Path
) -> None:
    (tmp_path / "bloom").mkdir()
    (tmp_path / "bloom" / "config.json").write_text('{"model_type": "bloom", "architectures": ["BloomForCausalLM"]}')
    uri = f"file://{tmp_path / 'bloom'}"
    job_id = post(checkpoint={"uri": uri})
    run_job(context, claim(), NEVER)

    error = watch.job(job_id).error
    assert error is not None
    assert (error["code"], error["param"]) == ("invalid_checkpoint", "checkpoint")
    assert "bloom" in error["message"]
    assert str(context.settings.work_dir) not in error["message"]


@pytest.mark.parametrize(
    ("changes", "code", "param"),
    [
        ({"checkpoint": {"uri": "file:///nowhere/model"}}, "forbidden_reference", "checkpoint"),
        ({"validation": {"uri": "https://127.0.0.1/dev.csv"}}, "forbidden_reference", "validation"),
        ({"validation": {"uri": "upload:upl_0"}}, "reference_not_found", "validation"),
        ({"test": {"uri": "ftp://a.example/dev.csv"}}, "invalid_reference", "test"),
        ({"train": {"uri": "upload:upl_0"}, "finetune": {}}, "reference_not_found", "train"),
        (
            {"calibrate": {"uri": "upload:upl_0"}, "knobs": {"method": "compress"}},
            "reference_not_found",
            "calibrate",
        ),
        ({"knobs": {"max_length": 10_000}}, "invalid_config", "config"),
    ],
)
def test_each_failure_names_its_code_and_the_part_to_blame(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, changes: dict[str, Any], code: str, param: str
) -> None:
    job_id = post(**changes)
    run_job(context, claim(), NEVER)
    job = watch.job(job_id)
    assert job.error is not None
    assert (job.state, job.error["code"], job.error["param"]) == (JobState.FAILED, code, param)
    assert left_behind(context, job_id) == []


@pytest.mark.parametrize(("part", "file"), [("checkpoint", "checkpoint"), ("validation", "validation.jsonl")])
def test_content_that_is_not_what_the_job_says_fails_it(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open, part: str, file: str
) -> None:
    job_id = post(**{part: {"uri": opened.uri(file), "sha256": "0" * 64}})
    run_job(context, claim(), NEVER)
    job = watch.job(job_id)
    assert job.error is not None
    assert (job.state, job.error["code"], job.error["param"]) == (JobState.FAILED, "digest_mismatch", part)


def test_an_error_of_our_own_is_told_by_its_id_alone(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, tmp_path: Path
) -> None:
    context.settings.var_dir.mkdir()
    for place in (context.settings.cache_dir, tmp_path / "storage"):
        place.write_text("a file where a directory should be")
    broken = replace(context, storage=LocalStorage(tmp_path / "storage"))
    job_id = post()
    with capture_logs() as logs:
        run_job(broken, claim(), NEVER)

    error = watch.job(job_id).error
    assert error is not None
    assert (error["code"], error["retryable"]) == ("internal_error", True)
    (line,) = [line for line in logs if line["event"] == "internal_error"]
    assert line["error_id"] in error["message"]
    assert isinstance(line["exc_info"], OSError)
    assert "files_left_behind" in [line["event"] for line in logs]
    assert "Error" not in error["message"]
    assert str(tmp_path) not in error["message"]


def test_a_job_is_cancelled_in_the_middle_of_its_pass(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, sessions: Sessions, opened: Open
) -> None:
    job_id = post(knobs=LONG_PASS)

    def cancel() -> None:
        with session_scope(sessions) as session:
            request_cancel(session, job_id)

    with watch.in_the_middle(job_id, 10, cancel):
        run_job(context, claim(), NEVER)

    assert watch.job(job_id).state is JobState.CANCELLED
    assert watch.events(job_id)[-2:] == ["job.cancelling", "job.cancelled"]
    assert 10 <= len(watch.trials(job_id)) < len(library_run(opened, LONG_PASS).trace)
    assert left_behind(context, job_id) == []


def test_a_job_is_paused_in_the_middle_of_its_pass_and_resumed_it_ends_as_if_undisturbed(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, sessions: Sessions, opened: Open
) -> None:
    job_id = post(knobs=LONG_PASS)

    def pause() -> None:
        with session_scope(sessions) as session:
            request_pause(session, job_id)

    with watch.in_the_middle(job_id, 20, pause):
        run_job(context, claim(), NEVER)
    paused, before = watch.job(job_id), watch.trials(job_id)
    assert (paused.state, paused.attempt, paused.worker) == (JobState.PAUSED, 0, None)
    assert watch.events(job_id)[-2:] == ["job.pausing", "job.paused"]
    undisturbed = library_run(opened, LONG_PASS)
    assert 20 <= len(before) <= len(undisturbed.trace), "what had arrived was stored, too"
    assert list(context.settings.work_dir.iterdir()) == []

    with session_scope(sessions) as session:
        resume_job(session, job_id)
    run_job(context, claim(), NEVER)
    assert watch.job(job_id).state is JobState.SUCCEEDED
    after = watch.trials(job_id)
    assert after[: len(before)] == before
    assert without_seconds(after) == without_seconds(undisturbed.trace)


def test_a_job_that_was_given_back_goes_on_and_ends_as_if_undisturbed(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open
) -> None:
    job_id = post(knobs=LONG_PASS)
    stop = threading.Event()
    watcher = watch.at_trial(job_id, 20, stop.set)
    run_job(context, claim(), stop)
    watcher.join()
    given_back = watch.job(job_id)
    assert (given_back.state, given_back.attempt, given_back.worker) == (JobState.QUEUED, 0, None)
    before = watch.trials(job_id)
    undisturbed = library_run(opened, LONG_PASS)
    assert 20 <= len(before) <= len(undisturbed.trace), "what had arrived was stored, too"

    run_job(context, claim(), NEVER)
    assert watch.job(job_id).state is JobState.SUCCEEDED
    after = watch.trials(job_id)
    assert after[: len(before)] == before
    assert without_seconds(after) == without_seconds(undisturbed.trace)
    assert all(early.seconds <= late.seconds for early, late in pairwise(after))
    plan = json.loads(content_of(context, artifacts_of(context, job_id)["plan.json"]))
    assert plan["layers"] == undisturbed.plan.model_dump(mode="json")["layers"]


def test_a_worker_that_lost_its_job_writes_nothing_more(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, sessions: Sessions
) -> None:
    job_id = post(knobs=LONG_PASS)
    taken: list[tuple[int, int]] = []

    def lose() -> None:
        """What a claim by another worker does, once the lease has run out."""
        with session_scope(sessions) as session:
            job = session.get_one(Job, job_id, with_for_update=True)
            job.fence += 1
            job.worker = "another"
        taken.append((watch.job(job_id).fence, len(watch.trials(job_id))))

    watcher = watch.at_trial(job_id, 10, lose)
    run_job(context, claim(), NEVER)
    watcher.join()

    job = watch.job(job_id)
    assert (job.fence, len(watch.trials(job_id))) == taken[0]
    assert (job.state, job.worker) == (JobState.RUNNING, "another")
    assert watch.events(job_id)[-1] == "job.running"
    assert list(context.settings.work_dir.iterdir()) == []


def test_a_worker_that_lost_its_job_while_packaging_publishes_nothing(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, sessions: Sessions
) -> None:
    job_id = post()
    mine = claim()

    def lose() -> None:
        while watch.job(job_id).state is not JobState.PACKAGING:
            threading.Event().wait(0.01)
        with session_scope(sessions) as session:
            session.get_one(Job, job_id, with_for_update=True).lease_until = datetime(2000, 1, 1, tzinfo=UTC)
            session.flush()
            assert claim_next(session, "another", 60) is not None

    watcher = threading.Thread(target=lose)
    watcher.start()
    assert not run_job(context, mine, NEVER)
    watcher.join()
    job = watch.job(job_id)
    assert (job.state, job.attempt, job.report) == (JobState.FETCHING, 2, None)
    assert artifacts_of(context, job_id) == {}

    run_job(context, job, NEVER)
    assert watch.job(job_id).state is JobState.SUCCEEDED
    for artifact in artifacts_of(context, job_id).values():
        assert hashlib.sha256(content_of(context, artifact)).hexdigest() == artifact.sha256


def test_a_job_that_no_worker_of_this_size_can_run_is_refused_with_both_figures(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim
) -> None:
    settings = context.settings.model_copy(update={"memory_bytes": 250_000_000})
    job_id = post()
    run_job(replace(context, settings=settings), claim(), NEVER)
    job = watch.job(job_id)
    assert job.error is not None
    assert (job.state, job.error["code"], job.error["retryable"]) == (JobState.FAILED, "too_big", False)
    assert re.search(r"at least 0\.3\d GB of memory, and this worker has 0\.25 GB", job.error["message"])
    assert job.error["param"] == "checkpoint"
    assert watch.trials(job_id) == []


def test_a_job_that_a_larger_worker_can_run_is_left_to_it(
    context: WorkerContext, sessions: Sessions, post: Post, watch: Watch, claim: Claim
) -> None:
    small = replace(context, settings=context.settings.model_copy(update={"memory_bytes": 250_000_000}))
    with session_scope(sessions) as session:
        note_worker(session, "large", "large", "queue", Device.CPU, memory=10**10)
    job_id = post()
    run_job(small, claim(), NEVER)
    job = watch.job(job_id)
    assert (job.state, job.attempt, job.error) == (JobState.QUEUED, 0, None)
    assert re.search(r"it needs 0\.3\d GB, and the worker that looked at it has 0\.25 GB", job.status_reason or "")
    assert 250_000_000 < job.memory["cpu"] < 10**9
    assert claim_job(small) is None
    assert claim_job(context) is not None


def test_a_job_does_not_go_on_with_other_data_than_it_began_with(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, tmp_path: Path
) -> None:
    data = write_rows(tmp_path / "rows.jsonl", tiny_rows(40))
    job_id = post(knobs=LONG_PASS, validation={"uri": f"file://{data}"})
    stop = threading.Event()
    watcher = watch.at_trial(job_id, 10, stop.set)
    run_job(context, claim(), stop)
    watcher.join()
    write_rows(data, tiny_rows(40, seed=5))
    run_job(context, claim(), NEVER)

    error = watch.job(job_id).error
    assert error is not None
    assert (error["code"], error["retryable"]) == ("inputs_changed", True)
    assert "validation" in error["message"]


def test_no_secret_of_a_reference_is_told_or_logged(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim
) -> None:
    job_id = post(validation={"uri": "https://127.0.0.1/dev.csv?X-Signature=canary"})
    with capture_logs() as logs:
        run_job(context, claim(), NEVER)
    with session_scope(context.sessions) as session:
        events = [event.data for event in events_after(session, job_id, limit=100).items]
    assert watch.job(job_id).state is JobState.FAILED
    assert "canary" not in repr((logs, events, watch.job(job_id).error))
