"""Results get to where their owners want them, whole and with the owner's token; whatever fails is seen and can be repeated."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from axformer.wire.handovers import HandoverState
from store.repositories import claims, jobs, leases
from store.repositories.events import events_after
from store.repositories.handovers import ask, claim_handover, finish_handover, new_handover
from store.repositories.jobs import NewJob
from store.repositories.moves import lock_job
from store.session import Sessions, session_scope
from store.settings import Settings
from store.signing import open_vault
from store.states import JobState
from store.storage.storage import job_folder, open_storage
from store.tables.files import Artifact
from store.tables.jobs import Job
from store.tables.teams import Team
from tests.loopback import Loopback
from tests.model_hub import TOKEN, Hub
from tests.object_store import KEY, KEY_ID, Fault, ObjectStore, always
from tests.specs import spec_of
from worker.handover.courier import Courier, hand_over_next

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")  # of the hub's library
FILES = {
    "README.md": b"---\nlicense: mit\n---\n# card",
    "report.json": b"{}",
    "model/config.json": b'{"a": 1}',
    "model/model.safetensors": b"\0" * 1000,
    "artifact.tar.gz": b"all of them",
}
DELIVERED = {name: content for name, content in FILES.items() if name != "artifact.tar.gz"}


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub()
    with Loopback(made) as made.server:
        yield made


@pytest.fixture
def settings(database_url: str, tmp_path: Path, object_store: ObjectStore, hub: Hub) -> Settings:
    assert hub.server is not None
    return Settings(
        database_url=SecretStr(database_url),
        var_dir=tmp_path / "var",
        object_store=object_store.settings(),
        hub_endpoint=hub.server.url,
        announce_seconds=0.01,
        handover_retry_seconds=(100, 200),
    )


class Owner:
    """Posts jobs that are to be handed over, and sees what became of them."""

    def __init__(self, sessions: Sessions, settings: Settings, team: Team) -> None:
        self.sessions, self.settings, self.team_id = sessions, settings, team.id
        self.storage = open_storage(settings)

    def lock(self, token: str) -> bytes:
        return open_vault(self.settings).lock(token)

    def post(self, uri: str, token: str = TOKEN) -> str:
        """A claimed job that is being packaged."""
        new = NewJob(self.team_id, "job", spec_of())
        changed = vars(new) | {"handover": new_handover(uri), "handover_token": self.lock(token)}
        with session_scope(self.sessions) as session:
            job_id = jobs.create_job(session, NewJob(**changed)).job.id
        with session_scope(self.sessions) as session:
            job = claims.claim_next(session, "worker", 60)
            assert job is not None
            for state in (JobState.VALIDATING, JobState.RUNNING, JobState.PACKAGING):
                leases.set_state(session, job.id, job.fence, state)
        return job_id

    def succeed(self, job_id: str) -> str:
        files = []
        for name, content in FILES.items():
            stored = self.storage.put(job_folder(job_id), [content])
            about = {"sha256": stored.sha256, "bytes": stored.bytes, "media_type": "application/json"}
            files.append(Artifact(job_id=job_id, name=name, **about))
        with session_scope(self.sessions) as session:
            fence = lock_job(session, job_id).fence
            leases.finish_succeeded(session, job_id, fence, {"removed": []}, files)
        return job_id

    def job(self, job_id: str) -> Job:
        with session_scope(self.sessions) as session:
            return lock_job(session, job_id)

    def told(self, job_id: str) -> dict[str, Any]:
        handover = self.job(job_id).handover
        assert handover is not None
        return handover

    def events(self, job_id: str) -> list[str]:
        with session_scope(self.sessions) as session:
            return [event.type for event in events_after(session, job_id, limit=100).items]

    def has_token(self, job_id: str) -> bool:
        with session_scope(self.sessions) as session:
            return lock_job(session, job_id).handover_token is not None

    def ask(self, job_id: str, uri: str, token: str = TOKEN) -> None:
        with session_scope(self.sessions) as session:
            ask(session, job_id, uri, self.lock(token))

    def work(self) -> bool:
        return hand_over_next(self.sessions, self.settings)


@pytest.fixture
def owner(sessions: Sessions, settings: Settings, team: Team) -> Owner:
    return Owner(sessions, settings, team)


def objects(store: ObjectStore, bucket: str) -> dict[str, bytes]:
    listed = store.client.list_objects_v2(Bucket=bucket).get("Contents", [])
    return {entry["Key"]: store.client.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read() for entry in listed}


def test_a_result_gets_into_a_bucket_when_there_is_one(owner: Owner, object_store: ObjectStore) -> None:
    bucket = object_store.new_bucket()
    job_id = owner.post(f"s3://{bucket}/models/a/", f"{KEY_ID}:{KEY}")
    assert not owner.work()  # there is no result yet
    owner.succeed(job_id)
    object_store.requests.clear()
    assert owner.work()
    assert objects(object_store, bucket) == {f"models/a/{name}": content for name, content in DELIVERED.items()}
    told = owner.told(job_id)
    assert (told["state"], told["files"], told["bytes"]) == ("done", 4, sum(map(len, DELIVERED.values())))
    assert not owner.has_token(job_id)
    assert owner.events(job_id)[-1] == "job.delivered"
    assert [path.rpartition("/")[2] for method, path in object_store.requests if method == "PUT"][-1] == "report.json?"
    assert not owner.work()
    assert list(owner.settings.spool_dir.iterdir()) == []


def test_a_result_gets_into_a_repository_in_one_commit(owner: Owner, hub: Hub) -> None:
    job_id = owner.succeed(owner.post("hf://org/name"))
    assert owner.work()
    assert owner.told(job_id)["state"] == "done", owner.told(job_id)
    assert hub.commits == [{name.removeprefix("model/"): content for name, content in DELIVERED.items()}]
    assert [(asked["organization"], asked["name"], asked["visibility"]) for asked in hub.created] == [
        ("org", "name", "private")
    ]


@pytest.mark.parametrize("path", ["/api/repos/create", "/api/models/org/name/preupload", "/org/name.git", "/lfs/"])
def test_a_hub_that_refuses_gets_nothing_and_the_token_is_forgotten(owner: Owner, hub: Hub, path: str) -> None:
    hub.broken[path] = 403
    job_id = owner.succeed(owner.post("hf://org/name"))
    assert owner.work()
    told = owner.told(job_id)
    assert (told["state"], told["error"]["code"]) == ("failed", "target_refused")
    assert "'hf://org/name' does not take the files with this token (status 403)" in told["error"]["message"]
    assert not owner.has_token(job_id)
    assert owner.events(job_id)[-1] == "job.not_delivered"
    assert owner.job(job_id).state is JobState.SUCCEEDED
    assert hub.commits == []

    hub.broken.clear()
    owner.ask(job_id, "hf://org/name")
    assert owner.work()
    assert owner.told(job_id)["state"] == "done"
    assert "error" not in owner.told(job_id) or owner.told(job_id)["error"] is None
    assert len(hub.commits) == 1


def test_another_token_is_refused(owner: Owner) -> None:
    job_id = owner.succeed(owner.post("hf://org/name", "hf_other"))
    owner.work()
    assert owner.told(job_id)["error"]["code"] == "target_refused"


def test_a_place_that_fails_is_tried_again_later_and_at_last_given_up(owner: Owner, object_store: ObjectStore) -> None:
    bucket = object_store.new_bucket()
    job_id = owner.succeed(owner.post(f"s3://{bucket}/a", f"{KEY_ID}:{KEY}"))
    with object_store.failing(always(Fault(503, "SlowDown"))):
        for attempt, state in enumerate(["waiting", "waiting", "failed"], start=1):
            due(owner, job_id)
            assert owner.work()
            told = owner.told(job_id)
            assert (told["state"], told["attempts"], told["error"]["code"]) == (state, attempt, "target_unavailable")
            assert not owner.work()
    assert objects(object_store, bucket) == {}
    owner.ask(job_id, f"s3://{bucket}/a", f"{KEY_ID}:{KEY}")
    assert owner.work()
    assert len(objects(object_store, bucket)) == len(DELIVERED)


def due(owner: Owner, job_id: str) -> None:
    """As if the pause were over."""
    with session_scope(owner.sessions) as session:
        job = lock_job(session, job_id)
        job.handover_at = job.created_at


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(403, "AccessDenied"), "target_refused"),
        (Fault(404, "NoSuchBucket"), "target_refused"),
        (Fault(507, "InsufficientStorage"), "target_full"),
    ],
)
def test_a_bucket_that_refuses_says_so_without_a_word_of_the_services_settings(
    owner: Owner, object_store: ObjectStore, fault: Fault, code: str
) -> None:
    job_id = owner.succeed(owner.post(f"s3://{object_store.new_bucket()}/a", f"{KEY_ID}:{KEY}"))
    with object_store.failing(always(fault)):
        owner.work()
    error = owner.told(job_id)["error"]
    assert error["code"] == code
    assert "AXFORMER" not in error["message"]
    assert KEY not in json.dumps(owner.told(job_id))


def test_content_that_somebody_changed_goes_nowhere(owner: Owner, hub: Hub) -> None:
    job_id = owner.succeed(owner.post("hf://org/name"))
    for path in (owner.settings.storage_dir / job_folder(job_id)).iterdir():
        path.write_bytes(b"changed")
    owner.work()
    assert owner.told(job_id)["error"]["code"] == "content_missing"
    assert (hub.commits, hub.created) == ([], [])


def test_a_job_without_a_result_goes_nowhere_and_forgets_the_token(owner: Owner) -> None:
    job_id = owner.post("hf://org/name")
    with session_scope(owner.sessions) as session:
        fence = lock_job(session, job_id).fence
        leases.finish_failed(session, job_id, fence, {"code": "x", "message": "y", "retryable": False})
    assert owner.told(job_id)["error"]["code"] == "no_result"
    assert not owner.has_token(job_id)
    assert not owner.work()


def test_what_a_lost_worker_was_at_is_taken_on_by_another_and_its_word_is_not_heard(owner: Owner, hub: Hub) -> None:
    job_id = owner.succeed(owner.post("hf://org/name"))
    with session_scope(owner.sessions) as session:
        lost = claim_handover(session, 60, most=5)
    assert lost is not None
    assert not owner.work()
    due(owner, job_id)
    assert owner.work()
    with session_scope(owner.sessions) as session:
        assert not finish_handover(session, lost, files=0, bytes=0)
    assert (owner.told(job_id)["state"], owner.told(job_id)["files"]) == ("done", 4)
    assert len(hub.commits) == 1


def test_what_ends_every_worker_that_sends_it_is_given_up(owner: Owner, hub: Hub) -> None:
    job_id = owner.succeed(owner.post("hf://org/name"))
    most = 1 + len(owner.settings.handover_retry_seconds)
    for _ in range(most):
        with session_scope(owner.sessions) as session:
            assert claim_handover(session, 60, most=most) is not None, "and the worker is lost"
        due(owner, job_id)
    assert not owner.work()
    told = owner.told(job_id)
    assert (told["state"], told["attempts"], told["error"]["code"]) == ("failed", most, "worker_lost")
    assert "job.not_delivered" in owner.events(job_id)
    assert not owner.has_token(job_id)
    assert hub.commits == []


def test_a_thread_of_the_worker_does_it(owner: Owner, hub: Hub) -> None:
    job_id = owner.succeed(owner.post("hf://org/name"))
    courier = Courier(owner.sessions, owner.settings)
    courier.start()
    waited = threading.Event()
    while owner.told(job_id)["state"] in (HandoverState.WAITING, HandoverState.SENDING):
        assert not waited.wait(0.01)
    courier.stop()
    courier.join()
    assert len(hub.commits) == 1
