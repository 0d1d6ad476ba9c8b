"""Addresses that lead to where only this machine can go, whatever they are called and wherever they redirect to."""

import gzip
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from store.storage.storage import LocalStorage
from store.tables.webhooks import Delivery
from tests.loopback import Answer, Loopback
from worker.fetching.cache import ContentCache
from worker.fetching.errors import FetchError, ReferenceForbidden, ReferenceInvalid, ReferenceTooLarge
from worker.fetching.fetcher import Fetcher
from worker.fetching.policy import FetchPolicy
from worker.fetching.sources import open_source
from worker.fetching.transfer import Transfer
from worker.webhooks.sender import send

POLICY = FetchPolicy(attempts=1, connect_seconds=5.0, read_seconds=5.0, plain_http=True)
PUBLIC = "93.184.215.14"


def fetcher(tmp_path: Path, policy: FetchPolicy) -> Fetcher:
    """Fetches without any upload."""
    storage = LocalStorage(tmp_path / "storage")
    transfer = Transfer(ContentCache(tmp_path / "cache"), policy, lambda: None)
    return Fetcher(transfer, lambda reference: open_source(reference, policy, lambda _: None, storage))


def files_in(directory: Path) -> list[str]:
    """Files, wherever they are below."""
    return [str(path) for path in directory.rglob("*") if path.is_file()]


REFUSED = {
    "this machine": "https://127.0.0.1/a.csv",
    "this machine by name": "https://localhost/a.csv",
    "this machine short": "https://127.1/a.csv",
    "this machine as a number": "https://2130706433/a.csv",
    "this machine in hexadecimal": "https://0x7f000001/a.csv",
    "this machine in octal": "https://0177.0.0.1/a.csv",
    "no address": "https://0.0.0.0/a.csv",
    "zero": "https://0/a.csv",
    "this machine in IPv6": "https://[::1]/a.csv",
    "no address in IPv6": "https://[::]/a.csv",
    "mapped": "https://[::ffff:127.0.0.1]/a.csv",
    "mapped in hexadecimal": "https://[::ffff:7f00:1]/a.csv",
    "compatible": "https://[::127.0.0.1]/a.csv",
    "6to4": "https://[2002:7f00:1::1]/a.csv",
    "6to4 to the cloud": "https://[2002:a9fe:a9fe::1]/a.csv",
    "NAT64": "https://[64:ff9b::10.0.0.1]/a.csv",
    "local NAT64": "https://[64:ff9b:1::a00:1]/a.csv",
    "the cloud's secrets": "https://169.254.169.254/latest/meta-data/a.csv",
    "the cloud's secrets in IPv6": "https://[fd00:ec2::254]/a.csv",
    "another cloud's secrets": "https://168.63.129.16/a.csv",
    "containers' secrets": "https://169.254.170.2/a.csv",
    "a private network": "https://10.0.0.1/a.csv",
    "another private network": "https://172.31.255.255/a.csv",
    "a home": "https://192.168.0.1/a.csv",
    "a carrier's network": "https://100.64.0.1/a.csv",
    "a benchmark's network": "https://198.18.0.1/a.csv",
    "all at once": "https://224.0.0.1/a.csv",
    "everybody": "https://255.255.255.255/a.csv",
    "reserved": "https://240.0.0.1/a.csv",
    "a link's own": "https://[fe80::1]/a.csv",
    "a site's own": "https://[fec0::1]/a.csv",
    "a unique local one": "https://[fc00::1]/a.csv",
    "documentation": "https://[2001:db8::1]/a.csv",
    "a port of a shell": f"https://{PUBLIC}:22/a.csv",
    "a port of a database": f"https://{PUBLIC}:5432/a.csv",
    "port zero": f"https://{PUBLIC}:0/a.csv",
    "plain text": f"http://{PUBLIC}/a.csv",
}


@pytest.mark.slow
def test_an_address_that_is_not_public_is_never_connected_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("a connection was begun"))
    for name, url in REFUSED.items():
        with subtests.test(name):
            with pytest.raises((ReferenceForbidden, ReferenceInvalid)) as caught:
                fetcher(tmp_path, replace(POLICY, plain_http=False)).data(url, tmp_path / "data")
            assert ";" in str(caught.value)
            assert files_in(tmp_path) == []


MALFORMED = {
    "no scheme": "//a.example/a.csv",
    "another scheme": "ftp://a.example/a.csv",
    "a program": "javascript:alert(1)//a.csv",
    "content": "data:text/csv,text\na.csv",
    "gopher": "gopher://127.0.0.1:6379/_FLUSHALL/a.csv",
    "a user": "https://root@a.example/a.csv",
    "a password": "https://root:canary@a.example/a.csv",
    "an empty user": "https://@a.example/a.csv",
    "no host": "https:///a.csv",
    "a port that is none": "https://a.example:abc/a.csv",
    "a port too high": "https://a.example:99999/a.csv",
    "a port below": "https://a.example:-1/a.csv",
    "an open bracket": "https://[::1/a.csv",
    "a zone": "https://[fe80::1%25eth0]/a.csv",
    "a zero byte": "https://a.example/%00/a.csv",
    "a line break": "https://a.example/\r\nHost: evil/a.csv",
    "a line break in the host": "https://a.exa\r\nmple/a.csv",
    "a space in the host": "https://a. example/a.csv",
    "a host too long": f"https://{'a' * 300}.example/a.csv",
    "a host of dots": "https://.../a.csv",
    "a file outside": "file:///etc/passwd.csv",
    "a file that climbs": "file:///srv/../etc/passwd.csv",
    "a file of another machine": "file://evil/etc/passwd.csv",
    "a bucket by its number": "s3://arn:aws:s3:us-east-1:123456789012:accesspoint/evil/a.csv",
    "a bucket with a port": "s3://127.0.0.1:9000/a.csv",
    "a bucket that climbs": "s3://../a.csv",
    "a bucket in capitals": "s3://BUCKET/a.csv",
    "a hub's path that climbs": "hf://datasets/../../a.csv",
    "a hub's file that climbs": "hf://datasets/acme/set/../../../api/whoami.csv",
    "an upload that climbs": "upload:../../etc/passwd.csv",
    "an upload with a path": "upload:upl_1/a.csv",
    "another's upload": "upload:upl_00000000000000000000000000000000",
    "a wish too long": "x" * 5000,
}


def test_a_reference_of_another_form_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for name, reference in MALFORMED.items():
        with subtests.test(name):
            with pytest.raises(FetchError) as caught:
                fetcher(tmp_path, replace(POLICY, plain_http=False)).data(reference, tmp_path / "data")
            assert "canary" not in str(caught.value)
            assert files_in(tmp_path) == []


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, list[str]]], list[str]]:
    """Stands in for the system's resolver: each look-up of a name gives its next address, at last always the same."""

    def set_names(names: dict[str, list[str]]) -> list[str]:
        asked: list[str] = []

        def look_up(host: str, port: int, *_: object, **__: object) -> list[Any]:
            asked.append(host)
            if host not in names:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            address = names[host].pop(0) if len(names[host]) > 1 else names[host][0]
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            return [(family, socket.SOCK_STREAM, 6, "", (address, port))]

        monkeypatch.setattr("worker.fetching.addresses.socket.getaddrinfo", look_up)
        return asked

    return set_names


def redirecting(paths: dict[str, str]) -> Callable[[str, str, dict[str, str]], Answer]:
    """Answers that send on, and one file."""
    return lambda _, path, __: Answer(302, {"Location": paths[path]}) if path in paths else Answer(body=b"text\na\n")


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback(lambda *_: Answer(body=b"secret")) as running:
        yield running


def test_a_name_is_looked_up_once_and_the_answer_is_what_is_dialled(
    tmp_path: Path, server: Loopback, resolver: Callable[[dict[str, list[str]]], list[str]]
) -> None:
    """Rebinding: the name is public when it is checked, and this machine when it would be looked up again."""
    asked = resolver({"rebind.example": ["192.0.2.1", "127.0.0.1"]})
    policy = replace(POLICY, private_hosts=frozenset({"rebind.example"}), connect_seconds=0.2)
    with pytest.raises(FetchError):
        fetcher(tmp_path, policy).data(f"http://rebind.example:{server.port}/a.csv", tmp_path / "data")
    assert asked.count("rebind.example") == 1
    assert server.requests == []


@pytest.mark.parametrize("private", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "fd00:ec2::254", "::ffff:127.0.0.1"])
def test_a_name_that_turns_private_between_attempts_is_refused(
    tmp_path: Path, resolver: Callable[[dict[str, list[str]]], list[str]], private: str
) -> None:
    resolver({"rebind.example": ["::ffff:192.0.2.1", private]})
    for _ in range(2):
        with pytest.raises(ReferenceForbidden, match="not a public address"):
            fetcher(tmp_path, POLICY).data("https://rebind.example/a.csv", tmp_path / "data")


TARGETS = {
    "the cloud's secrets": "http://169.254.169.254/latest/a.csv",
    "this machine in IPv6": "http://[::1]/a.csv",
    "this machine by another name": "http://inside.example:{port}/a.csv",
    "a password": "http://me:secret@127.0.0.1:{port}/a.csv",
    "a file": "file:///etc/passwd",
    "another scheme": "gopher://127.0.0.1:{port}/a.csv",
    "no scheme": "//",
    "a port that is none": "http://a.example:port/a.csv",
    "an open bracket": "http://[::1/a.csv",
    "nowhere": "",
    "itself": "/a.csv",
    "a circle": "/b.csv",
}


def test_a_redirect_is_checked_as_its_first_address_was(
    tmp_path: Path, resolver: Callable[[dict[str, list[str]]], list[str]], subtests: pytest.Subtests
) -> None:
    resolver(
        {
            "127.0.0.1": ["127.0.0.1"],
            "inside.example": ["127.0.0.1"],
            "169.254.169.254": ["169.254.169.254"],
            "::1": ["::1"],
        }
    )
    policy = replace(POLICY, private_hosts=frozenset({"127.0.0.1"}))
    for name, target in TARGETS.items():
        paths: dict[str, str] = {"/b.csv": "/a.csv"}
        with subtests.test(name), Loopback(redirecting(paths)) as running:
            paths["/a.csv"] = target.format(port=running.port)
            with pytest.raises(FetchError):
                fetcher(tmp_path, policy).data(f"{running.url}/a.csv", tmp_path / "data")
            assert len(running.requests) <= 6
            assert not any("inside.example" in headers["host"] for _, _, headers in running.requests)
            assert files_in(tmp_path) == []


ANSWERS: dict[str, Answer] = {
    "a length too long": Answer(headers={"Content-Length": "9" * 30}),
    "a length that is none": Answer(headers={"Content-Length": "many"}),
    "a length below": Answer(headers={"Content-Length": "-1"}),
    "more than the cap": Answer(body=b"x" * 2000),
    "a promise of more than the cap": Answer(headers={"Content-Length": str(1 << 40)}),
    "a long header": Answer(headers={"X-Long": "x" * 200_000}),
    "part of a file": Answer(206, {"Content-Range": "bytes 0-1/99"}, b"x" * 2000),
    "no content": Answer(204, {"Content-Length": "5"}),
    "nothing new": Answer(304),
    "a teapot": Answer(418),
    "an odd status": Answer(299, body=b"x" * 2000),
}


def answering(answer: Answer) -> Callable[[str, str, dict[str, str]], Answer]:
    """Gives one answer to everything."""
    return lambda *_: answer


def test_an_answer_that_is_no_small_file_is_refused(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    policy = replace(POLICY, private_hosts=frozenset({"127.0.0.1"}), max_bytes=1000)
    for name, answer in ANSWERS.items():
        with subtests.test(name):
            place = tmp_path_factory.mktemp("case")
            with Loopback(answering(answer)) as running, pytest.raises(FetchError):
                fetcher(place, policy).data(f"{running.url}/a.csv", place / "data")
            assert sum(Path(path).stat().st_size for path in files_in(place)) <= 1000


@pytest.mark.parametrize(
    ("body", "refusal"),
    [(gzip.compress(b"x" * (8 << 20), mtime=0), ReferenceTooLarge), (b"x" * 900, ReferenceInvalid)],
    ids=["a bomb", "no gzip"],
)
def test_a_packed_answer_is_counted_unpacked(tmp_path: Path, body: bytes, refusal: type[FetchError]) -> None:
    policy = replace(POLICY, private_hosts=frozenset({"127.0.0.1"}), max_bytes=10_000)
    with (
        Loopback(lambda *_: Answer(headers={"Content-Encoding": "gzip"}, body=body)) as running,
        pytest.raises(refusal),
    ):
        fetcher(tmp_path, policy).data(f"{running.url}/a.csv", tmp_path / "data")
    assert sum(Path(path).stat().st_size for path in files_in(tmp_path)) <= 10_000


@pytest.mark.slow
def test_webhooks_go_to_no_such_address_either(monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("a connection was begun"))
    for name, url in REFUSED.items():
        if "port" not in name:
            with subtests.test(name):
                attempt = send(
                    Delivery(id="msg_1", url=url, body="{}"), ["whsec_" + "c2VjcmV0" * 4], FetchPolicy(), 5.0
                )
                assert attempt.status is None
                assert "not sent" in str(attempt.error) or "Invalid IPv4" in str(attempt.error)
