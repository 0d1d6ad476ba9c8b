import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

from tests.loopback import Answer, Loopback
from tests.worker.fetching.conftest import CHECKPOINT, LOOPBACK, STRANGERS, contents
from worker.fetching.errors import ReferenceDenied, ReferenceForbidden, ReferenceMissing, ReferenceTooLarge
from worker.fetching.fetcher import Fetcher
from worker.fetching.policy import FetchPolicy

MakeFetcher = Callable[..., Fetcher]


class Bucket:
    """The three calls of an object store that reading needs: list, head and get."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects
        self.closed = {"closed"}
        """Buckets that exist and let nobody in."""

    def __call__(self, method: str, target: str, headers: dict[str, str]) -> Answer:
        parts = urlsplit(target)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        if bucket in self.closed:
            return self._error(403, "AccessDenied")
        if bucket != "bucket":
            return self._error(404, "NoSuchBucket")
        if not key:
            return self._list(parse_qs(parts.query).get("prefix", [""])[0])
        return self._object(key, headers) if key in self.objects else self._error(404, "NoSuchKey")

    def _object(self, key: str, headers: dict[str, str]) -> Answer:
        body = self.objects[key]
        etag = f'"{hashlib.md5(body).hexdigest()}"'
        if headers.get("if-match", etag) != etag:
            return self._error(412, "PreconditionFailed")
        said = {"ETag": etag, "Content-Type": "application/octet-stream"}
        if asked := headers.get("range"):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            return Answer(206, said, body[int(first) : int(last) + 1])
        return Answer(200, said, body)

    def _list(self, prefix: str) -> Answer:
        rows, deeper = "", set()
        for key, body in self.objects.items():
            rest = key.removeprefix(prefix)
            if not key.startswith(prefix):
                continue
            if "/" in rest:
                deeper.add(prefix + rest.partition("/")[0] + "/")
                continue
            etag = hashlib.md5(body).hexdigest()
            rows += (
                f"<Contents><Key>{escape(key)}</Key><Size>{len(body)}</Size><ETag>&quot;{etag}&quot;</ETag>"
                "<LastModified>2026-01-01T00:00:00.000Z</LastModified><StorageClass>STANDARD</StorageClass></Contents>"
            )
        rows += "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in sorted(deeper))
        body = f"<ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
        return Answer(200, {"Content-Type": "application/xml"}, body.encode())

    def _error(self, status: int, code: str) -> Answer:
        body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
        return Answer(status, {"Content-Type": "application/xml"}, body.encode())


@pytest.fixture
def bucket() -> Bucket:
    files = CHECKPOINT | STRANGERS | {"onnx/model.safetensors": b"deeper"}
    return Bucket({f"models/a/{name}": body for name, body in files.items()} | {"dev.csv": b"rows"})


@pytest.fixture
def server(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with Loopback(bucket) as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", running.url)
        yield running


@pytest.fixture
def policy(server: Loopback) -> FetchPolicy:
    return replace(LOOPBACK, grants=frozenset({"s3://bucket", "s3://closed"}))


def signed(server: Loopback) -> set[bool]:
    """Whether requests came with credentials."""
    return {"authorization" in headers for _, _, headers in server.requests}


@pytest.mark.parametrize(
    ("grants", "uses"),
    [
        ((), False),
        (("hf://*", "hf://bucket", "s3://buck", "s3://bucket2", "s3://dev"), False),
        (("s3://bucket",), True),
        (("s3://other", "s3://*"), True),
    ],
)
def test_credentials_are_used_for_granted_buckets_alone(
    server: Loopback,
    policy: FetchPolicy,
    make_fetcher: MakeFetcher,
    tmp_path: Path,
    grants: tuple[str, ...],
    uses: bool,
) -> None:
    fetcher = make_fetcher(replace(policy, grants=frozenset(grants)))
    fetcher.data("s3://bucket/dev.csv", tmp_path / "validation")
    fetcher.checkpoint("s3://bucket/models/a", tmp_path / "model")
    assert signed(server) == {uses}


def test_a_bucket_that_is_neither_public_nor_granted_is_denied_with_the_way_out(
    server: Loopback, policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    with pytest.raises(ReferenceDenied, match="not public; have the operator grant s3://closed to your team"):
        make_fetcher(replace(policy, grants=frozenset())).data("s3://closed/dev.csv", tmp_path / "validation")
    assert signed(server) == {False}


@pytest.mark.parametrize("uri", ["s3://bucket/models/a", "s3://bucket/models/a/"])
def test_a_checkpoint_below_a_prefix(policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path, uri: str) -> None:
    make_fetcher(policy).checkpoint(uri, tmp_path / "model")
    assert contents(tmp_path / "model") == CHECKPOINT


def test_an_unchanged_object_is_not_read_again(
    server: Loopback, bucket: Bucket, policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    make_fetcher(policy).data("s3://bucket/dev.csv", tmp_path / "first")
    asked = len(server.requests)
    second = make_fetcher(policy).data("s3://bucket/dev.csv", tmp_path / "second").path
    assert second.read_bytes() == b"rows"
    assert {method for method, *_ in server.requests[asked:]} == {"HEAD"}
    bucket.objects["dev.csv"] = b"new rows"
    assert make_fetcher(policy).data("s3://bucket/dev.csv", tmp_path / "third").path.read_bytes() == b"new rows"


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("s3://bucket/none.csv", ReferenceMissing),
        ("s3://other/dev.csv", ReferenceMissing),
        ("s3://closed/dev.csv", ReferenceDenied),
    ],
)
def test_what_the_store_refuses_is_told(
    policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path, uri: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match=uri):
        make_fetcher(policy).data(uri, tmp_path / "validation")


def test_a_large_object_is_refused_before_it_is_read(
    server: Loopback, policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    with pytest.raises(ReferenceTooLarge):
        make_fetcher(replace(policy, max_bytes=3)).data("s3://bucket/dev.csv", tmp_path / "validation")
    assert all(method == "HEAD" for method, *_ in server.requests)


@pytest.mark.parametrize("path", ["models", "models/", "/models/jobs/job_1"])
@pytest.mark.parametrize("prefix", ["models", ""])
def test_the_files_of_all_teams_are_not_read_by_a_reference(
    make_fetcher: MakeFetcher, policy: FetchPolicy, tmp_path: Path, path: str, prefix: str
) -> None:
    closed = make_fetcher(replace(policy, storage=("bucket", prefix)))
    for fetch, name in ((closed.checkpoint, ""), (closed.data, "/dev.csv")):
        with pytest.raises(ReferenceForbidden, match="the service's own storage"):
            fetch(f"s3://bucket/{path}{name}", tmp_path / "fetched")


def test_what_lies_beside_them_is_read(make_fetcher: MakeFetcher, policy: FetchPolicy, tmp_path: Path) -> None:
    closed = make_fetcher(replace(policy, storage=("bucket", "dev")))
    assert closed.data("s3://bucket/dev.csv", tmp_path / "validation").path.read_bytes() == b"rows"
