import errno
import gzip
import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.loopback import Answer, Dripping, Loopback, Site
from tests.worker.fetching.conftest import CHECKPOINT, LOOPBACK, STRANGERS, contents
from worker.fetching.errors import (
    FetchError,
    ReferenceDenied,
    ReferenceForbidden,
    ReferenceInvalid,
    ReferenceMissing,
    ReferenceTooLarge,
    SourceTooSlow,
    SourceUnavailable,
)
from worker.fetching.fetcher import Fetcher

MakeFetcher = Callable[..., Fetcher]


def test_a_checkpoint_is_fetched_by_known_names_only(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    site.files = {f"/m/{name}": body for name, body in (CHECKPOINT | STRANGERS).items()}
    make_fetcher().checkpoint(f"{server.url}/m/", tmp_path / "model")
    assert contents(tmp_path / "model") == CHECKPOINT
    assert all(server.count(f"/m/{name}") == 0 for name in STRANGERS)


def test_shards_are_found_through_the_index(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    shards = {f"model-0000{n}-of-00002.safetensors": b"part" * n for n in (1, 2)}
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    files = {"config.json": b"{}", "model.safetensors.index.json": json.dumps(index).encode(), **shards}
    site.files = {f"/m/{name}": body for name, body in files.items()}
    make_fetcher().checkpoint(f"{server.url}/m", tmp_path / "model")
    assert contents(tmp_path / "model") == files


@pytest.mark.slow
@pytest.mark.parametrize(
    "index", [b"[]", b"{", b'{"weight_map": {"a": "../../x.safetensors"}}', b'{"weight_map": {"a": 1}}']
)
def test_an_index_that_names_something_else_is_refused(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path, index: bytes
) -> None:
    site.files = {"/m/config.json": b"{}", "/m/model.safetensors.index.json": index}
    with pytest.raises(ReferenceInvalid, match="index"):
        make_fetcher().checkpoint(f"{server.url}/m/", tmp_path / "model")


@pytest.mark.parametrize("packing", ["gzip", "GZIP"])
def test_what_a_server_packs_on_the_way_is_unpacked(make_fetcher: MakeFetcher, tmp_path: Path, packing: str) -> None:
    body = b'{"text": "a"}\n' * 1000
    answer = Answer(200, {"Content-Encoding": packing}, gzip.compress(body))
    with Loopback(lambda *_: answer) as server:
        fetched = make_fetcher().data(f"{server.url}/dev.jsonl", tmp_path / "data", hashlib.sha256(body).hexdigest())
    assert fetched.path.read_bytes() == body


def test_a_packing_that_is_not_read_is_named(make_fetcher: MakeFetcher, tmp_path: Path) -> None:
    with (
        Loopback(lambda *_: Answer(200, {"Content-Encoding": "br"}, b"x")) as server,
        pytest.raises(ReferenceInvalid, match="comes packed with br"),
    ):
        make_fetcher().data(f"{server.url}/dev.jsonl", tmp_path / "data")


@pytest.mark.parametrize(
    ("headers", "suffix"),
    [
        ({"Content-Disposition": 'attachment; filename="dev set.JSONL"'}, ".jsonl"),
        ({"Content-Disposition": "attachment; filename*=UTF-8''d%C3%A9v.csv.gz"}, ".csv.gz"),
        ({"Content-Disposition": "inline", "Content-Type": "text/csv; charset=utf-8"}, ".csv"),
        ({"Content-Type": "application/x-ndjson"}, ".jsonl"),
    ],
)
def test_an_address_without_an_ending_is_asked_for_its_name(
    make_fetcher: MakeFetcher, tmp_path: Path, headers: dict[str, str], suffix: str
) -> None:
    with Loopback(lambda *_: Answer(200, headers, b"rows")) as server:
        fetched = make_fetcher().data(f"{server.url}/download?id=5", tmp_path / "data")
    assert (fetched.path.name, fetched.path.read_bytes()) == (f"data{suffix}", b"rows")


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({}, "or write the name behind the address: ...#dev.jsonl"),
        ({"Content-Type": "text/html; charset=utf-8"}, "download' is a page of HTML; check the address"),
        ({"Content-Disposition": "attachment; filename=dev.xlsx"}, "is a spreadsheet; save it as"),
    ],
)
def test_an_address_that_tells_no_format_is_refused_with_the_remedy(
    make_fetcher: MakeFetcher, tmp_path: Path, headers: dict[str, str], message: str
) -> None:
    with (
        Loopback(lambda *_: Answer(200, headers, b"rows")) as server,
        pytest.raises(ReferenceInvalid, match=message),
    ):
        make_fetcher().data(f"{server.url}/download?id=5", tmp_path / "data")


def test_a_name_behind_the_address_is_not_asked_for(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    site.files["/download"] = b"rows"
    assert make_fetcher().data(f"{server.url}/download?id=5#a.tsv", tmp_path / "data").path.name == "data.tsv"
    assert [path for _, path, _ in server.requests] == ["/download?id=5"]


def test_a_query_goes_with_every_file_and_into_no_message(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    with pytest.raises(ReferenceMissing) as caught:
        make_fetcher().checkpoint(f"{server.url}/m/?sig=canary", tmp_path / "model")
    assert server.requests[0][1] == "/m/config.json?sig=canary"
    assert "canary" not in str(caught.value)
    assert "/m/config.json" in str(caught.value)


def test_a_second_job_does_not_download_again(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    site.files["/dev.jsonl"] = b'{"text": "a"}\n'
    first = make_fetcher().data(f"{server.url}/dev.jsonl", tmp_path / "first").path
    second = make_fetcher().data(f"{server.url}/dev.jsonl", tmp_path / "second").path
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_ino == second.stat().st_ino
    assert "if-none-match" in server.requests[1][2]


def test_a_changed_file_is_downloaded_again(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    site.files["/dev.jsonl"] = b"old\n"
    make_fetcher().data(f"{server.url}/dev.jsonl", tmp_path / "first")
    site.files["/dev.jsonl"] = b"new\n"
    assert make_fetcher().data(f"{server.url}/dev.jsonl", tmp_path / "second").path.read_bytes() == b"new\n"
    assert (tmp_path / "first.jsonl").read_bytes() == b"old\n"


@pytest.mark.parametrize("name", ["dev.jsonl", "dev.json", "dev.csv", "dev.parquet", "dev.jsonl.gz", "DEV.CSV"])
def test_the_suffix_of_data_is_kept(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path, name: str
) -> None:
    site.files[f"/{name}"] = b"rows"
    path = make_fetcher().data(f"{server.url}/{name}?sig=1", tmp_path / "validation").path
    assert path.name == "validation" + name[3:].lower()
    assert path.read_bytes() == b"rows"


@pytest.mark.parametrize("name", ["dev.pkl", "dev.csv.pickle", "dev.xlsx?sig=1", "dev.zip", "index.html"])
def test_data_of_another_kind_is_not_asked_for(
    server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path, name: str
) -> None:
    with pytest.raises(ReferenceInvalid, match=r"is not read|is a (spreadsheet|ZIP archive|page)"):
        make_fetcher().data(f"{server.url}/{name}", tmp_path / "validation")
    assert server.requests == []


def test_a_source_that_fails_twice_is_tried_again(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    site.files["/dev.csv"] = b"rows"
    site.failures["/dev.csv"] = 2
    assert make_fetcher().data(f"{server.url}/dev.csv", tmp_path / "validation").path.read_bytes() == b"rows"
    assert server.count("/dev.csv") == 3


def test_a_source_that_keeps_failing_is_unavailable(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    site.failures["/dev.csv"] = 99
    with pytest.raises(SourceUnavailable, match="503"):
        make_fetcher().data(f"{server.url}/dev.csv", tmp_path / "validation")
    assert server.count("/dev.csv") == LOOPBACK.attempts


def test_a_closed_port_is_unavailable(make_fetcher: MakeFetcher, tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable):
        make_fetcher().data("http://127.0.0.1:1/dev.csv", tmp_path / "validation")


@pytest.mark.parametrize(
    ("status", "error"), [(403, ReferenceDenied), (404, ReferenceMissing), (418, ReferenceInvalid)]
)
def test_statuses_have_errors(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path, status: int, error: type[FetchError]
) -> None:
    site.statuses["/dev.csv"] = status
    with pytest.raises(error, match=str(status)):
        make_fetcher().data(f"{server.url}/dev.csv", tmp_path / "validation")
    assert server.count("/dev.csv") == 1


def test_a_truncated_answer_leaves_nothing(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    site.files["/dev.csv"] = b"half"
    site.promises["/dev.csv"] = 8
    with pytest.raises(SourceUnavailable):
        make_fetcher().data(f"{server.url}/dev.csv", tmp_path / "validation")
    assert not (tmp_path / "validation.csv").exists()
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("promised", [None, 10])
def test_an_oversized_answer_is_refused_whether_it_says_so_or_not(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path, promised: int | None
) -> None:
    site.files["/dev.csv"] = b"0123456789"
    answers = {"/dev.csv": promised} if promised else {}
    site.promises = answers
    with pytest.raises(ReferenceTooLarge):
        make_fetcher(replace(LOOPBACK, max_bytes=9)).data(f"{server.url}/dev.csv", tmp_path / "validation")
    assert not (tmp_path / "validation.csv").exists()


def test_the_cap_of_a_checkpoint_counts_all_its_files(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    site.files = {f"/m/{name}": body for name, body in CHECKPOINT.items()}
    total = sum(len(body) for body in CHECKPOINT.values())
    make_fetcher(replace(LOOPBACK, max_bytes=total)).checkpoint(f"{server.url}/m/", tmp_path / "fits")
    with pytest.raises(ReferenceTooLarge):
        make_fetcher(replace(LOOPBACK, max_bytes=total - 1)).checkpoint(f"{server.url}/m/", tmp_path / "over")


def test_a_configuration_of_absurd_size_is_refused(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    site.files = {"/m/config.json": b" " * 101}
    with pytest.raises(ReferenceTooLarge, match=r"config\.json"):
        make_fetcher(replace(LOOPBACK, text_bytes=100)).checkpoint(f"{server.url}/m/", tmp_path / "model")


@pytest.mark.parametrize("part", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"])
def test_a_source_that_drips_is_given_up(make_fetcher: MakeFetcher, tmp_path: Path, part: bytes) -> None:
    """Each byte comes before the client would call it silence, of the headers or of the content."""
    with Dripping(part) as server, pytest.raises(SourceTooSlow, match="too long"):
        make_fetcher(replace(LOOPBACK, file_seconds=0.5)).data(f"{server.url}/dev.csv", tmp_path / "validation")
    assert server.connections == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_source_that_is_far_too_slow_is_given_up(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    site.files["/dev.csv"] = b"rows"
    policy = replace(LOOPBACK, pace_seconds=0.0, slowest=1e12)
    with pytest.raises(SourceTooSlow, match="bytes a second"):
        make_fetcher(policy).data(f"{server.url}/dev.csv", tmp_path / "validation")
    assert server.count("/dev.csv") == 1


def test_the_files_of_a_job_have_one_deadline(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    site.files["/dev.csv"] = b"rows"
    with pytest.raises(SourceTooSlow, match="in all"):
        make_fetcher(replace(LOOPBACK, job_seconds=0.0)).data(f"{server.url}/dev.csv", tmp_path / "validation")


def test_the_disk_is_not_filled_to_the_brim(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    site.files["/dev.csv"] = b"rows"
    policy = replace(LOOPBACK, keep_free_bytes=shutil.disk_usage(tmp_path).total)
    with pytest.raises(OSError, match="No space left") as caught:
        make_fetcher(policy).data(f"{server.url}/dev.csv", tmp_path / "validation")
    assert caught.value.errno == errno.ENOSPC
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_redirects_are_followed_five_times_at_most(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    site.redirects = {f"/{n}.csv": f"/{n + 1}.csv" for n in range(6)}
    site.files["/6.csv"] = b"rows"
    assert make_fetcher().data(f"{server.url}/1.csv", tmp_path / "five").path.read_bytes() == b"rows"
    with pytest.raises(ReferenceInvalid, match="redirects"):
        make_fetcher().data(f"{server.url}/0.csv", tmp_path / "six")


@pytest.mark.parametrize(
    "target", ["http://localhost:{port}/a.csv", "http://169.254.169.254/a.csv", "http://[::1]/a.csv"]
)
def test_a_redirect_to_a_private_address_is_refused(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path, target: str
) -> None:
    site.redirects["/dev.csv"] = target.format(port=server.port)
    with pytest.raises(ReferenceForbidden, match="not a public address"):
        make_fetcher().data(f"{server.url}/dev.csv", tmp_path / "validation")
    assert len(server.requests) == 1


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/a.csv"])
def test_a_redirect_to_another_scheme_is_refused(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path, target: str
) -> None:
    site.redirects["/dev.csv"] = target
    with pytest.raises(FetchError):
        make_fetcher().data(f"{server.url}/dev.csv", tmp_path / "validation")


def test_plain_http_needs_the_operators_word(server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path) -> None:
    with pytest.raises(ReferenceForbidden, match="https://"):
        make_fetcher(replace(LOOPBACK, plain_http=False)).data(f"{server.url}/dev.csv", tmp_path / "validation")
    assert server.requests == []


def test_proxies_of_the_environment_are_not_used(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    site.files["/dev.csv"] = b"rows"
    assert make_fetcher().data(f"{server.url}/dev.csv", tmp_path / "validation").path.read_bytes() == b"rows"


def test_a_download_breaks_off_when_the_job_is_no_longer_wanted(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    class Unwanted(Exception):  # noqa: N818
        pass

    calls = 0

    def check_stop() -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise Unwanted

    site.files["/dev.csv"] = b"rows"
    with pytest.raises(Unwanted):
        make_fetcher(check_stop=check_stop).data(f"{server.url}/dev.csv", tmp_path / "validation")
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_the_digest_tells_whether_the_content_changed(
    site: Site, server: Loopback, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    site.files = {f"/m/{name}": body for name, body in CHECKPOINT.items()}
    first, second = (make_fetcher().checkpoint(f"{server.url}/m/", tmp_path / name).sha256 for name in ("a", "b"))
    site.files["/m/vocab.txt"] = b"[UNK]\n"
    third = make_fetcher().checkpoint(f"{server.url}/m/", tmp_path / "c").sha256
    assert first == second != third
