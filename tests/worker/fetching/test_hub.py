import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.loopback import Answer, Loopback, Site
from tests.worker.fetching.conftest import CHECKPOINT, LOOPBACK, STRANGERS, contents
from worker.fetching.errors import ReferenceDenied, ReferenceMissing, SourceUnavailable
from worker.fetching.fetcher import Fetcher
from worker.fetching.policy import FetchPolicy

MakeFetcher = Callable[..., Fetcher]
COMMIT = "c" * 40
FILES = CHECKPOINT | STRANGERS | {"onnx/model.safetensors": b"deeper"}


OWNER = "hf_owner"
"""The one token that gated repositories let in."""


class Hub:
    """The few routes of a hub that are used, before a site that holds the files.

    As on the real hub, anybody is told the commit and the file names of a gated repository; only those who have been let in are
    given the files.
    """

    def __init__(self) -> None:
        rows = {"data/dev.csv": b"rows"}
        repositories = {
            "org/name": FILES,
            "org/gated": CHECKPOINT,
            "datasets/org/rows": rows,
            "datasets/org/gated": rows,
        }
        self.site = Site(
            {
                f"/{repository}/resolve/{COMMIT}/{name}": body
                for repository, files in repositories.items()
                for name, body in files.items()
            }
        )
        self._names = {
            name if "datasets/" in name else f"models/{name}": list(repositories[name]) for name in repositories
        }
        self.errors = {"/api/models/org/none": (401, "RepoNotFound"), "/api/models/org/down": (500, "")}
        self.errors["/api/models/org/name/revision/none"] = (404, "RevisionNotFound")

    def __call__(self, method: str, target: str, headers: dict[str, str]) -> Answer:
        path = target.partition("?")[0]
        if path in self.errors:
            status, code = self.errors[path]
            return Answer(status, {"X-Error-Code": code})
        if path.startswith("/api/"):
            return self._told(path.removeprefix("/api/").partition("/revision/")[0])
        if "/gated/" in path and headers.get("authorization") != f"Bearer {OWNER}":
            return Answer(403 if "authorization" in headers else 401, {"X-Error-Code": "GatedRepo"})
        return self.site(method, target, headers)

    def _told(self, repository: str) -> Answer:
        siblings = [{"rfilename": name} for name in self._names[repository]]
        body = {"id": repository.partition("/")[2], "sha": COMMIT, "siblings": siblings}
        return Answer(200, {"Content-Type": "application/json"}, json.dumps(body).encode())


ALL = frozenset({"hf://*"})


@pytest.fixture
def hub() -> Iterator[Loopback]:
    with Loopback(Hub()) as server:
        yield server


@pytest.fixture
def policy(hub: Loopback) -> FetchPolicy:
    return replace(LOOPBACK, private_hosts=frozenset(), hub_endpoint=hub.url, hub_token="hf_canary", grants=ALL)


def test_a_model_is_fetched_at_one_commit(policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path) -> None:
    make_fetcher(policy).checkpoint("hf://org/name@main", tmp_path / "model")
    assert contents(tmp_path / "model") == CHECKPOINT


def test_the_same_commit_is_not_downloaded_again(
    policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        make_fetcher(policy).checkpoint("hf://org/name", tmp_path / name)
    assert contents(tmp_path / "second") == CHECKPOINT
    assert all((tmp_path / "first" / name).samefile(tmp_path / "second" / name) for name in CHECKPOINT)


def test_a_file_of_a_data_set(policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path) -> None:
    path = make_fetcher(policy).data("hf://datasets/org/rows/data/dev.csv", tmp_path / "validation").path
    assert path.read_bytes() == b"rows"


def test_the_token_is_sent_to_the_hub_and_nowhere_else(
    hub: Loopback, policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    other = Site({"/cdn/config.json": b"{}"})
    with Loopback(other) as cdn:
        answers = Hub()
        answers.site.redirects[f"/org/name/resolve/{COMMIT}/config.json"] = f"{cdn.url}/cdn/config.json"
        with Loopback(answers) as redirecting:
            own = replace(policy, hub_endpoint=redirecting.url)
            make_fetcher(own).checkpoint("hf://org/name", tmp_path / "model")
            assert all(headers["authorization"] == "Bearer hf_canary" for *_, headers in redirecting.requests)
        assert cdn.count("/cdn/config.json") == 1
        assert all("authorization" not in headers for *_, headers in cdn.requests)


@pytest.mark.parametrize(
    ("grants", "is_sent"), [((), False), (("s3://*", "hf://or", "hf://name"), False), (("hf://acme", "hf://org"), True)]
)
@pytest.mark.parametrize("uri", ["hf://org/name", "hf://datasets/org/rows/data/dev.csv"])
def test_the_token_is_sent_for_granted_owners_alone(
    hub: Loopback,
    policy: FetchPolicy,
    make_fetcher: MakeFetcher,
    tmp_path: Path,
    uri: str,
    grants: tuple[str, ...],
    is_sent: bool,
) -> None:
    fetcher = make_fetcher(replace(policy, grants=frozenset(grants)))
    (fetcher.data if "datasets" in uri else fetcher.checkpoint)(uri, tmp_path / "fetched")
    assert {"authorization" in headers for *_, headers in hub.requests} == {is_sent}


def test_without_a_token_none_is_sent(
    hub: Loopback,
    policy: FetchPolicy,
    make_fetcher: MakeFetcher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_someone_elses")
    make_fetcher(replace(policy, hub_token=None)).checkpoint("hf://org/name", tmp_path / "model")
    assert all("authorization" not in headers for *_, headers in hub.requests)


@pytest.mark.parametrize(
    ("uri", "error", "word"),
    [
        ("hf://org/gated", ReferenceDenied, "gated"),
        ("hf://org/none", ReferenceMissing, "does not exist"),
        ("hf://org/name@none", ReferenceMissing, "no revision 'none'"),
        ("hf://org/down", SourceUnavailable, "hub"),
    ],
)
def test_what_the_hub_refuses_is_told(
    policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path, uri: str, error: type[Exception], word: str
) -> None:
    with pytest.raises(error, match=word) as caught:
        make_fetcher(policy).checkpoint(uri, tmp_path / "model")
    assert "hf_canary" not in str(caught.value)


def test_a_file_that_the_data_set_lacks(policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path) -> None:
    with pytest.raises(ReferenceMissing):
        make_fetcher(policy).data("hf://datasets/org/rows/none.csv", tmp_path / "validation")
