"""A worker whose files are in a bucket: no job is lost to a store that is away, and nothing is made of changed content."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from store.repositories.files import add_upload, list_artifacts
from store.session import Sessions, session_scope
from store.setting_groups import RetainSettings
from store.settings import Settings
from store.states import JobState
from store.storage.storage import job_folder, upload_folder
from store.tables.files import Upload
from store.tables.jobs import Job
from store.tables.teams import Team
from tests.object_store import Environ, Fault, ObjectStore, always
from tests.worker.conftest import Open, Post, Watch
from worker.base.context import WorkerContext, claim_job
from worker.janitor import clean
from worker.job.runner import run_job

Claim = Callable[[], Job]
NEVER = threading.Event()


@pytest.fixture
def settings(settings: Settings, object_store: ObjectStore) -> Settings:
    place = f"s3://{object_store.new_bucket()}/files"
    return settings.model_copy(update={"storage": place, "object_store": object_store.settings()})


def stored(context: WorkerContext, job_id: str) -> dict[str, bytes]:
    """The files of a job by name, without those that tell the time."""
    with session_scope(context.sessions) as session:
        artifacts = list_artifacts(session, job_id)
    names = ("plan.json", "model/config.json", "model/model.safetensors")
    return {
        artifact.name: b"".join(context.storage.read(job_folder(job_id), artifact.sha256))
        for artifact in artifacts
        if artifact.name in names
    }


@pytest.mark.slow
def test_a_job_goes_on_when_the_store_does(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, object_store: ObjectStore
) -> None:
    undisturbed = post()
    run_job(context, claim(), NEVER)
    assert watch.job(undisturbed).state is JobState.SUCCEEDED

    job_id = post()
    claimed = claim()
    with object_store.failing(always(Fault(503, "SlowDown"), "PUT")):
        assert not run_job(context, claimed, NEVER)
        job = watch.job(job_id)
        assert (job.state, job.attempt) == (JobState.QUEUED, 0)
        assert claim_job(context) is None  # until the store takes files
    run_job(context, claim(), NEVER)
    assert watch.job(job_id).state is JobState.SUCCEEDED
    assert stored(context, job_id) == stored(context, undisturbed) != {}


def test_credentials_that_end_in_the_middle_lose_no_job(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, object_store: ObjectStore
) -> None:
    job_id = post()
    claimed = claim()
    sent: list[str] = []

    def expired(environ: Environ) -> Fault | None:
        """From the third file on."""
        if environ["REQUEST_METHOD"] == "PUT":
            sent.append(environ["PATH_INFO"])
        return Fault(400, "ExpiredToken") if len(sent) > 2 else None

    with object_store.failing(expired):
        run_job(context, claimed, NEVER)
    assert (watch.job(job_id).state, watch.job(job_id).attempt) == (JobState.QUEUED, 0)
    run_job(context, claim(), NEVER)
    assert watch.job(job_id).state is JobState.SUCCEEDED


def test_a_full_store_fails_the_job_which_can_be_retried(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, object_store: ObjectStore
) -> None:
    job_id = post()
    claimed = claim()
    with object_store.failing(always(Fault(507, "InsufficientStorage"), "PUT")):
        run_job(context, claimed, NEVER)
        assert claim_job(context) is None
    error = watch.job(job_id).error
    assert error is not None
    assert (error["code"], error["retryable"]) == ("storage_full", True)
    assert context.storage.folders("jobs") == []


@pytest.fixture
def upload(context: WorkerContext, team: Team, sessions: Sessions, opened: Open) -> str:
    """An upload of the validation data."""
    content = Path(opened.root / "validation.jsonl").read_bytes()
    kept = context.storage.put(upload_folder("upl_1"), [content])
    with session_scope(sessions) as session:
        row = Upload(id="upl_1", team_id=team.id, filename="dev.jsonl", sha256=kept.sha256, bytes=kept.bytes)
        add_upload(session, row)
    return "upl_1"


def test_an_upload_that_somebody_changed_is_not_used(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, object_store: ObjectStore, upload: str
) -> None:
    bucket, client = context.settings.storage_bucket, object_store.client
    assert bucket is not None
    (key,) = [entry["Key"] for entry in client.list_objects_v2(Bucket=bucket[0])["Contents"]]
    about = client.head_object(Bucket=bucket[0], Key=key)["Metadata"]
    client.put_object(Bucket=bucket[0], Key=key, Body=b'{"text": "other", "label": 0}\n', Metadata=about)
    job_id = post(validation={"uri": f"upload:{upload}"})
    run_job(context, claim(), NEVER)
    error = watch.job(job_id).error
    assert error is not None
    assert (error["code"], error["param"]) == ("digest_mismatch", "validation")
    assert "upload the file again" in error["message"]


def test_a_store_that_is_away_while_an_upload_is_fetched_loses_no_job(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, object_store: ObjectStore, upload: str
) -> None:
    job_id = post(validation={"uri": f"upload:{upload}"})
    claimed = claim()
    with object_store.failing(always(Fault(503))):
        run_job(context, claimed, NEVER)
    assert (watch.job(job_id).state, watch.job(job_id).attempt) == (JobState.QUEUED, 0)
    run_job(context, claim(), NEVER)
    assert watch.job(job_id).state is JobState.SUCCEEDED


@pytest.mark.slow
def test_the_janitor_removes_what_no_row_names(
    context: WorkerContext, post: Post, claim: Claim, watch: Watch, object_store: ObjectStore
) -> None:
    job_id = post()
    run_job(context, claim(), NEVER)
    context.storage.put(job_folder("job_gone"), [b"x"])
    assert clean(context.sessions, context.settings, context.storage).orphans == 0
    at_once = context.settings.model_copy(update={"retain": RetainSettings(orphan_days=1e-9)})
    time.sleep(1.1)  # a bucket knows whole seconds
    assert clean(context.sessions, at_once, context.storage).orphans == 1
    assert context.storage.folders("jobs") == [job_folder(job_id)]
    with object_store.failing(always(Fault(503))):
        assert clean(context.sessions, context.settings, context.storage).failed > 0
    assert stored(context, job_id) != {}
