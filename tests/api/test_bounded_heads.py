"""A head of a request that does not end takes no more than its share of memory."""

import socket
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from api.server import HEAD_BYTES

_PIECE = b"x" * 4096
_ANSWER_SECONDS = 60.0


@pytest.fixture
def address(live):
    """Where the app listens."""
    url = urlsplit(live)
    return url.hostname, url.port


def endless(address, begin: bytes) -> tuple[bytes, int]:
    """The answer to what begins so and does not end, and how many bytes of it were taken."""
    sent = 0
    with socket.create_connection(address, timeout=_ANSWER_SECONDS) as connection:
        connection.sendall(begin)
        try:
            while sent < 100 * HEAD_BYTES:
                connection.sendall(_PIECE)
                sent += len(_PIECE)
        except OSError:  # the server has closed the connection
            pass
        try:
            return connection.recv(4096), sent
        except OSError:
            return b"", sent


@pytest.mark.parametrize(
    "begin",
    [
        b"GET /",
        b"GET /healthz HTTP/1.1\r\nX-Long: ",
        b"GET /healthz HTTP/1.1\r\n" + b"X-Many: y\r\n" * 10_000 + b"X-Last: ",
    ],
    ids=["address", "one header", "many headers"],
)
def test_a_head_without_an_end_is_refused(address, begin):
    answer, sent = endless(address, begin)
    assert answer == b"" or b" 431 " in answer or b" 400 " in answer
    assert sent < 100 * HEAD_BYTES


def test_large_heads_and_larger_bodies_are_taken_on_one_connection(address, crew):
    headers = crew.headers | {"X-Long": "x" * (HEAD_BYTES // 2), "Content-Type": "application/json"}
    connection = HTTPConnection(*address, timeout=_ANSWER_SECONDS)
    try:
        for method, body, status in (("POST", b" " * (HEAD_BYTES - 2) + b"{}", 422), ("GET", None, 200)):
            connection.request(method, "/v1/jobs", body, headers)
            answer = connection.getresponse()
            assert (answer.status, len(answer.read()) > 0) == (status, True)
    finally:
        connection.close()
