import ipaddress
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.addresses import is_public
from tests.loopback import Loopback, Site
from tests.worker.fetching.conftest import LOOPBACK
from worker.fetching.addresses import PinnedTransport, resolve
from worker.fetching.errors import ReferenceForbidden, SourceUnavailable
from worker.fetching.policy import FetchPolicy

LOCALHOST = Path(__file__).with_name("localhost.pem")
"""A certificate for the name ``localhost`` alone, with its key."""


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fd00:ec2::254",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "ff0e::1",
        "::7f00:1",
        "fec0::1",
        "3fff::1",
        "5f00::1",
        "64:ff9b:1::808:808",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "168.63.129.16",
        "192.88.99.1",
        "192.0.0.192",
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_public_addresses(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@given(st.ip_addresses(v=4))
def test_wrapping_an_address_does_not_make_it_public(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    for form in (
        f"::ffff:{address}",
        f"64:ff9b::{address}",
        f"2002:{number >> 16:x}:{number & 0xFFFF:x}::1",
        f"::{address}",
    ):
        assert not is_public(ipaddress.IPv6Address(form)) or is_public(address)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "2130706433", "0x7f.1"])
def test_this_machine_is_refused_by_any_name(host: str) -> None:
    with pytest.raises(ReferenceForbidden, match="not a public address"):
        resolve(host, 443, FetchPolicy())


def test_the_operator_can_allow_a_host() -> None:
    assert "127.0.0.1" in resolve("LOCALHOST", 443, FetchPolicy(private_hosts=frozenset({"localhost"})))


def test_a_name_that_does_not_exist_is_unavailable() -> None:
    with pytest.raises(SourceUnavailable, match="cannot be resolved"):
        resolve("no-such-host.invalid", 443, FetchPolicy())


@pytest.mark.parametrize("port", [22, 5432, 6379, 8080])
def test_other_ports_of_public_hosts_need_the_operators_word(port: int) -> None:
    url = f"https://8.8.8.8:{port}/"
    with (
        httpx2.Client(transport=PinnedTransport(FetchPolicy())) as client,
        pytest.raises(ReferenceForbidden, match=f"port {port} of host '8.8.8.8' is not read"),
    ):
        client.get(url)
    assert FetchPolicy(ports=frozenset({port})).allows_port("8.8.8.8", port)


def test_a_password_in_an_address_is_never_sent() -> None:
    transport = PinnedTransport(LOOPBACK)
    with httpx2.Client(transport=transport) as client, pytest.raises(ReferenceForbidden, match="leave them out"):
        client.get("http://me:hunter2@127.0.0.1:1/")


def test_plain_http_is_refused_by_default() -> None:
    transport = PinnedTransport(replace(LOOPBACK, plain_http=False))
    with httpx2.Client(transport=transport) as client, pytest.raises(ReferenceForbidden, match="https://"):
        client.get("http://127.0.0.1:1/")


@pytest.fixture
def secure() -> Iterator[Loopback]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(LOCALHOST)
    with Loopback(Site({"/a": b"secret"}), tls=context) as server:
        yield server


def client_for(host: str) -> httpx2.Client:
    trusted = ssl.create_default_context(cafile=str(LOCALHOST))
    policy = FetchPolicy(private_hosts=frozenset({host}))
    return httpx2.Client(transport=PinnedTransport(policy, verify=trusted))


def test_the_certificate_is_checked_against_the_name_though_the_address_is_dialled(secure: Loopback) -> None:
    with client_for("localhost") as client:
        assert client.get(f"https://localhost:{secure.port}/a").content == b"secret"
    assert secure.requests[0][2]["host"] == f"localhost:{secure.port}"


def test_a_certificate_for_another_name_is_refused(secure: Loopback) -> None:
    with client_for("127.0.0.1") as client, pytest.raises(httpx2.ConnectError, match="certificate"):
        client.get(f"https://127.0.0.1:{secure.port}/a")
