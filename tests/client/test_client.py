"""The client against a real API: what each method gives, and what it makes of refusals."""

import hashlib
import json
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from axformer.client import (
    Client,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    RefusedError,
    UnauthorizedError,
    WaitTimeoutError,
)
from axformer.errors import InputError
from store.repositories.files import find_upload
from store.session import Sessions, session_scope
from store.settings import Settings
from store.storage.storage import LocalStorage, upload_folder
from tests.api.conftest import Crew, Stage, trial
from tests.client.conftest import FILES, QUICK, beside, play_worker

ORDER = {"order": "auto"}
MEASURED = {"done": 2, "known": 2, "seconds": 1.0, "inputs": {}}


def test_an_upload_is_stored_as_it_is_and_a_job_can_name_it(api: Client, tmp_path: Path, job: dict[str, str]) -> None:
    data = tmp_path / "dév.jsonl"
    data.write_bytes(b"row\n" * 50_000)
    sent: list[int] = []
    upload = api.upload(data, sent.append)
    assert (upload.filename, upload.bytes, sum(sent)) == ("dév.jsonl", 200_000, 200_000)
    assert upload.sha256 == hashlib.sha256(data.read_bytes()).hexdigest()
    made = api.submit("named", **{**job, "validation": upload})
    assert made.validation["uri"] == f"upload:{upload.id}"


def test_a_directory_is_packed_without_what_is_never_read(
    api: Client, crew: Crew, sessions: Sessions, settings: Settings, tmp_path: Path
) -> None:
    home = tmp_path / "bert"
    home.mkdir()
    strangers = (
        "2_Dense/pytorch_model.bin",
        "pytorch_model.bin",
        "modeling.py",
        "trainer_state.json",
        "requirements.txt",
    )
    read = (
        "1_Pooling/config.json",
        "2_Dense/config.json",
        "2_Dense/model.safetensors",
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
    )
    read += ("modules.json", "vocab.txt")
    (home / "1_Pooling").mkdir()
    (home / "2_Dense").mkdir()
    for name in (*read, *strangers):
        (home / name).write_text(name)
    upload = api.upload(home)
    assert upload.filename == "bert.tar"
    with session_scope(sessions) as session:
        stored = find_upload(session, upload.id, crew.id)
        assert stored is not None
    archive = tmp_path / "back.tar"
    archive.write_bytes(b"".join(LocalStorage(settings.storage_dir).read(upload_folder(upload.id), upload.sha256)))
    with tarfile.open(archive) as tar:
        assert sorted(tar.getnames()) == list(read)


def test_what_cannot_be_uploaded_is_said_before_anything_is_sent(api: Client, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="needs config"):
        api.upload(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        api.upload(tmp_path / "nowhere.jsonl")


def test_paths_of_a_job_are_uploaded_once_each(api: Client, tmp_path: Path) -> None:
    data = tmp_path / "dev.jsonl"
    data.write_text('{"text": "good", "label": 1}\n')
    made = api.submit(
        "local data",
        checkpoint="hf://acme/bert",
        validation=data,
        test=data,
        columns={"text": "sentence"},
        config={"refine_margin": 1.5},
        forms=["onnx"],
        labels={"project": "reviews"},
    )
    assert made.test is not None
    assert made.validation["uri"] == made.test["uri"]
    assert made.validation["columns"]["text"] == "sentence"
    assert (made.config["refine_margin"], made.forms, made.labels) == (1.5, ["compact", "onnx"], {"project": "reviews"})
    assert made.state == "queued"
    assert api.job(made.id).queue is not None


def test_a_point_of_a_path_is_exported_once(api: Client, stage: Stage) -> None:
    job_id = stage.running([trial(0), trial(1, verdict="accept")], MEASURED, config=ORDER)
    stage.succeed(job_id, {})
    made = api.export_point(job_id, 1, forms=["zeroed"], idempotency_key="once")
    assert (made.exported_from, made.upto, made.forms, made.state) == (job_id, 1, ["compact", "zeroed"], "queued")
    assert api.export_point(job_id, 1, forms=["zeroed"], idempotency_key="once").id == made.id


def test_jobs_are_read_page_by_page(api: Client, job: dict[str, str]) -> None:
    made = [api.submit(f"job {number}", **job, labels={"half": str(number % 2)}).id for number in range(7)]
    assert [found.id for found in api.jobs(page=3)] == made[::-1]
    assert [found.id for found in api.jobs(labels={"half": "1"}, states=["queued"])] == made[1::2][::-1]
    assert list(api.jobs(states=["failed"])) == []


@pytest.mark.parametrize(
    ("request_of", "kind", "status", "code", "words"),
    [
        (lambda api: api.job("job_none"), NotFoundError, 404, "job_not_found", "no job 'job_none'"),
        (lambda api: api.job("a?b=c"), NotFoundError, 404, "job_not_found", "a?b=c"),
        (lambda api: list(api.jobs(page=0)), InvalidRequestError, 422, "invalid_request", "limit"),
        (lambda api: list(api.stream("job_none")), NotFoundError, 404, "job_not_found", "no job"),
        (lambda api: list(api.trace("job_none")), NotFoundError, 404, "job_not_found", "no job"),
        (
            lambda api: api.submit("x", checkpoint="ftp://x", validation="s3://acme/b.csv"),
            InvalidRequestError,
            *(422, "invalid_reference", "ftp://x"),
        ),
    ],
)
def test_refusals_are_one_tree_with_status_code_and_message(
    api: Client, request_of: Callable[[Client], Any], kind: type[RefusedError], status: int, code: str, words: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        request_of(api)
    assert type(refused.value) is kind
    assert (refused.value.status, refused.value.code) == (status, code)
    assert words in refused.value.message
    assert refused.value.problem["status"] == status


def test_a_wrong_key_is_told_from_other_refusals(live: str) -> None:
    with (
        Client(live, "axk_wrong", patience=QUICK) as client,
        pytest.raises(UnauthorizedError, match="the key is unknown"),
    ):
        client.queue()


def test_another_team_s_job_is_not_there(live: str, rivals: Crew, stage: Stage) -> None:
    job_id = stage.queued()
    with Client(live, rivals.key, patience=QUICK) as client, pytest.raises(NotFoundError):
        client.cancel(job_id)


def test_a_job_is_followed_to_its_end(api: Client, stage: Stage) -> None:
    job_id, go_on = stage.queued(), threading.Event()
    seen, states = [], []
    with beside(lambda: play_worker(stage, job_id, go_on)):
        for update in api.follow(job_id, every=0.01):
            seen += update.trials
            states.append(update.job.state)
            if len(seen) == 3:
                go_on.set()
    assert seen == [trial(seq) for seq in range(5)]
    assert states[-1] == "succeeded"
    assert list(api.trace(job_id)) == seen
    assert [one.seq for one in api.trace(job_id, after=2)] == [3, 4]


def test_events_come_as_they_happen_and_end_with_the_job(api: Client, stage: Stage) -> None:
    job_id, go_on = stage.queued(), threading.Event()
    types = []
    with beside(lambda: play_worker(stage, job_id, go_on)):
        for number, event in enumerate(api.stream(job_id), start=1):
            assert event.seq == number
            types.append(event.type)
            if event.type == "job.running":
                go_on.set()
    assert types[0] == "job.created"
    assert types[-1] == "job.succeeded"
    assert [event.type for event in api.stream(job_id, after=2)] == types[2:]
    assert list(api.stream(job_id, after=len(types))) == []


def test_progress_comes_only_where_it_is_wanted(api: Client, stage: Stage, app: FastAPI) -> None:
    resources = app.state.resources
    resources.settings = resources.settings.model_copy(update={"event_progress_seconds": 0.01})
    job_id = stage.running()
    event = next(event for event in api.stream(job_id, with_progress=True) if event.type == "job.progress")
    assert (event.seq, event.data["message"]) == (4, "the untouched model is being looked at")
    stage.succeed(job_id, {})
    assert [event.seq for event in api.stream(job_id)] == [1, 2, 3, 4, 5, 6]


def test_waiting_ends_with_the_job_or_with_the_time(api: Client, stage: Stage) -> None:
    job_id = stage.queued()
    with pytest.raises(WaitTimeoutError, match="is queued after 0 s; it goes on"):
        api.wait(job_id, timeout=0)
    with beside(lambda: play_worker(stage, job_id)):
        assert api.wait(job_id, timeout=120, every=0.01).has_succeeded


def test_jobs_are_steered(api: Client, stage: Stage) -> None:
    job_id = stage.queued()
    assert api.pause(job_id).state == "paused"
    assert api.resume(job_id).state == "queued"
    assert [one.id for one in api.queue().data] == [job_id]
    assert api.cancel(job_id).state == "cancelled"
    with pytest.raises(ConflictError) as refused:
        api.pause(job_id)
    assert refused.value.code == "wrong_state"
    assert api.retry(job_id).state == "queued"
    assert api.cancel(job_id).state == "cancelled"
    api.delete(job_id)
    with pytest.raises(NotFoundError):
        api.job(job_id)


def test_a_failed_job_says_why(api: Client, stage: Stage) -> None:
    ended = api.wait(stage.failed())
    assert not ended.has_succeeded
    assert ended.error is not None
    assert (ended.error.code, ended.error.message) == ("invalid_data", "no rows")


def test_the_trace_is_saved_in_each_format_and_never_half(api: Client, stage: Stage, tmp_path: Path) -> None:
    trials = [trial(seq) for seq in range(20)]
    job_id = stage.running(trials)
    lines = api.save_trace(job_id, tmp_path / "trace.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [one.model_dump(mode="json") for one in trials]
    table = api.save_trace(job_id, tmp_path / "trace.csv", "csv").read_text().splitlines()
    assert table[0].startswith("seq,phase,element,loss")
    assert len(table) == 21
    with pytest.raises(NotFoundError):
        api.save_trace("job_none", tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="no trace as 'xml'"):
        api.save_trace(job_id, tmp_path / "trace.xml", "xml")
    with pytest.raises(InputError, match="cannot be written"):
        api.save_trace(job_id, tmp_path / "nowhere" / "trace.csv", "csv")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [
        "trace.csv",
        "trace.jsonl",
    ]


def test_the_files_of_a_job_are_listed(api: Client, stage: Stage) -> None:
    assert {one.name: one.bytes for one in api.artifacts(stage.succeeded(FILES))} == {
        name: len(content) for name, content in FILES.items()
    }
