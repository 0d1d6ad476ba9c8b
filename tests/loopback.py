"""A web server on this machine that serves files from memory and can misbehave on request."""

import hashlib
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import unquote


@dataclass
class Answer:
    """What the server says to one request."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


Answers = Callable[[str, str, dict[str, str]], Answer]
"""Method, path with query, and headers (lower case) to an answer."""


class Loopback:
    """Runs a function of requests as a server until closed."""

    def __init__(self, answers: Answers, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.bodies: list[bytes] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.bodies.append(self.rfile.read(int(headers.get("content-length", 0))))
                outer.requests.append((self.command, self.path, headers))
                answer = answers(self.command, self.path, headers)
                self.send_response(answer.status)
                said = {"Content-Length": str(len(answer.body)), "Connection": "close"} | answer.headers
                for name, value in said.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body)
                self.close_connection = True

            do_GET = do_HEAD = do_POST = do_PUT = _answer  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.port = self._server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> "Loopback":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def count(self, path: str) -> int:
        """How often this path was asked for, whatever the query."""
        return Counter(asked.partition("?")[0] for _, asked, _ in self.requests)[path]


class Dripping:
    """A server that sends a beginning and then one byte now and then, until the other side has enough or it is closed."""

    PAUSE_SECONDS = 0.02

    def __init__(self, beginning: bytes) -> None:
        self.connections = 0
        self._beginning = beginning
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _run(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                if self._over.is_set():
                    return
                self.connections += 1
                with suppress(OSError):  # the other side has enough
                    connection.sendall(self._beginning)
                    while not self._over.wait(self.PAUSE_SECONDS):
                        connection.sendall(b"x")

    def __enter__(self) -> "Dripping":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        socket.create_connection(self._listener.getsockname()).close()
        self._thread.join()
        self._listener.close()


@dataclass
class Site:
    """Static files with ETags, and ways to go wrong by path."""

    files: dict[str, bytes] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    """How many more times a path answers with status 503."""
    promises: dict[str, int] = field(default_factory=dict)
    """Content-Length that a path promises, whatever it sends."""
    statuses: dict[str, int] = field(default_factory=dict)

    def __call__(self, method: str, target: str, headers: dict[str, str]) -> Answer:
        path = unquote(target.partition("?")[0])
        if path in self.redirects:
            return Answer(302, {"Location": self.redirects[path]})
        if self.failures.get(path, 0) > 0:
            self.failures[path] -= 1
            return Answer(503)
        if path in self.statuses:
            return Answer(self.statuses[path])
        if path not in self.files:
            return Answer(404)
        body = self.files[path]
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if headers.get("if-none-match") == etag:
            return Answer(304, {"ETag": etag})
        promised = self.promises.get(path)
        return Answer(200, {"ETag": etag} | ({"Content-Length": str(promised)} if promised else {}), body)
