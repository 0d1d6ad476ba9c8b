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


class Hub:
    """The few routes of a hub that are used, before a site that holds the files."""

    def __init__(self) -> None:
        self.site = Site({f"/org/name/resolve/{COMMIT}/{name}": body for name, body in FILES.items()})
        self.site.files[f"/datasets/org/rows/resolve/{COMMIT}/data/dev.csv"] = b"rows"
        self.errors = {"/api/models/org/gated": (403, "GatedRepo"), "/api/models/org/none": (401, "RepoNotFound")}
        self.errors["/api/models/org/name/revision/none"] = (404, "RevisionNotFound")
        self.errors["/api/models/org/down"] = (500, "")

    def __call__(self, method: str, target: str, headers: dict[str, str]) -> Answer:
        path = target.partition("?")[0]
        if path in self.errors:
            status, code = self.errors[path]
            return Answer(status, {"X-Error-Code": code})
        if path.startswith("/api/"):
            kind, names = ("datasets/org/rows", ["data/dev.csv"]) if "datasets" in path else ("org/name", list(FILES))
            siblings = [{"rfilename": name} for name in names]
            body = {"id": kind.removeprefix("datasets/"), "sha": COMMIT, "siblings": siblings}
            return Answer(200, {"Content-Type": "application/json"}, json.dumps(body).encode())
        return self.site(method, target, headers)


@pytest.fixture
def hub() -> Iterator[Loopback]:
    with Loopback(Hub()) as server:
        yield server


@pytest.fixture
def policy(hub: Loopback) -> FetchPolicy:
    return replace(LOOPBACK, private_hosts=frozenset(), hub_endpoint=hub.url, hub_token="hf_canary")


def test_a_model_is_fetched_at_one_commit(policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path) -> None:
    make_fetcher(policy).checkpoint("hf://org/name@main", tmp_path / "model")
    assert contents(tmp_path / "model") == CHECKPOINT


def test_the_same_commit_is_not_downloaded_again(
    hub: Loopback, policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    make_fetcher(policy).checkpoint("hf://org/name", tmp_path / "first")
    asked = len(hub.requests)
    make_fetcher(policy).checkpoint("hf://org/name", tmp_path / "second")
    assert contents(tmp_path / "second") == CHECKPOINT
    assert [path for _, path, _ in hub.requests[asked:]] == ["/api/models/org/name"]


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
