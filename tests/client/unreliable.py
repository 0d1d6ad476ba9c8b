"""A proxy on this machine that stands before a real server and goes wrong on request."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_PATIENCE = 120.0
_CHUNK = 1 << 16
_HOP_BY_HOP = ("connection", "transfer-encoding", "keep-alive")


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request."""

    lost_before: bool = False
    """The connection closes, and the server never sees the request."""
    lost_after: bool = False
    """The server serves the request, and the connection closes instead of an answer."""
    status: int | None = None
    """Answered so by something before the server."""
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    """The connection closes after so many bytes of the answer's body."""
    damaged: bool = False
    """The first byte of the answer's body is another."""


@dataclass
class Unreliable:
    """A running proxy. Faults are used up by the requests that come, first by first."""

    upstream: str
    faults: list[Fault] = field(default_factory=list)
    concerns: Callable[[str, str], bool] = lambda method, path: True
    """Which requests, by method and path, faults are for."""
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    def fault_of(self, method: str, path: str) -> Fault:
        """The next fault, if this request is to have one."""
        return self.faults.pop(0) if self.faults and self.concerns(method, path) else Fault()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: Unreliable

    def _serve(self) -> None:
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        self.proxy.requests.append((self.command, self.path, {name.lower(): value for name, value in headers.items()}))
        fault = self.proxy.fault_of(self.command, self.path)
        if fault.lost_before:
            return
        if fault.status is not None:
            self.send_response(fault.status)
            self._head(fault.headers | {"Content-Length": "0"})
            return
        where = urlsplit(self.proxy.upstream)
        with closing(http.client.HTTPConnection(where.hostname or "", where.port, timeout=_PATIENCE)) as upstream:
            upstream.request(self.command, self.path, body or None, headers)
            with closing(upstream.getresponse()) as answer:
                self._pass_on(answer, fault)

    def _pass_on(self, answer: http.client.HTTPResponse, fault: Fault) -> None:
        if fault.lost_after:
            answer.read()
            return
        self.send_response(answer.status)
        self._head({name: value for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP})
        sent = 0
        while chunk := answer.read1(_CHUNK):
            if fault.damaged and not sent:
                chunk = bytes([chunk[0] ^ 1]) + chunk[1:]
            if fault.cut_after is not None and sent + len(chunk) > fault.cut_after:
                self.wfile.write(self._framed(chunk[: fault.cut_after - sent], answer))
                return
            self.wfile.write(self._framed(chunk, answer))
            sent += len(chunk)
        if fault.cut_after is None and self._is_chunked(answer):
            self.wfile.write(b"0\r\n\r\n")

    def _head(self, headers: dict[str, str]) -> None:
        for name, value in headers.items():
            self.send_header(name, value)
        if "content-length" not in {name.lower() for name in headers}:
            self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()

    @staticmethod
    def _is_chunked(answer: http.client.HTTPResponse) -> bool:
        return answer.getheader("Content-Length") is None

    def _framed(self, chunk: bytes, answer: http.client.HTTPResponse) -> bytes:
        return b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunk and self._is_chunked(answer) else chunk

    do_GET = do_HEAD = do_POST = do_DELETE = _serve  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Callers that go away are what is tested."""


@contextmanager
def before(upstream: str) -> Iterator[Unreliable]:
    """A proxy that stands before ``upstream``."""
    proxy = Unreliable(upstream)
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    server = _Quiet(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
