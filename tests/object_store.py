"""S3-compatible stores on this machine; one of each for each process that tests.

moto's server has faults on request. It checks neither signatures nor what they say of a body, so a fault stands for each
refusal. rclone's, another implementation, checks both.
"""

import hashlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import botocore.session
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from store.setting_groups import StorageSettings
from store.storage.bucket import Bucket
from store.system.processes import free_port

Environ = dict[str, Any]
KEY_ID, KEY = "test", "test-secret"


@dataclass(frozen=True)
class Fault:
    """What a request meets instead of the store."""

    status: int = 503
    code: str = "SlowDown"
    breaks_after: int | None = None
    """The store answers, and the connection ends after this many bytes of it."""


Rule = Callable[[Environ], Fault | None]
"""Which fault a request meets."""


class Quiet(WSGIRequestHandler):
    """Logs nothing."""

    def log(self, type: str, message: str, *args: object) -> None:
        pass


class Reachable:
    """What is alike of all stores."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which a process finds the store."""
        return {"AXFORMER_STORAGE_ENDPOINT": self.url, "AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": KEY}

    def settings(self, **changes: Any) -> StorageSettings:
        """Settings of this store, with short waits."""
        return StorageSettings(
            **{"endpoint": self.url, "connect_seconds": 1.0, "read_seconds": 5.0, "attempts": 2} | changes
        )

    @cached_property
    def client(self) -> Any:
        """A client that is not the service's."""
        session = botocore.session.get_session()
        session.set_credentials(KEY_ID, KEY)
        return session.create_client("s3", endpoint_url=self.url, region_name="us-east-1")

    def new_bucket(self) -> str:
        """The name of a new, empty bucket."""
        name = f"bucket-{uuid4().hex[:12]}"
        self.client.create_bucket(Bucket=name)
        return name

    def bucket(self, **changes: Any) -> Bucket:
        """A new bucket, as the service uses it."""
        return Bucket(self.new_bucket(), self.settings(**changes))


class Rclone(Reachable):
    """The S3 server of rclone over a directory."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        program = Path(sys.executable).with_name("rclone")
        serve = [program, "serve", "s3", "--addr", f"127.0.0.1:{self.port}", "--auth-key", f"{KEY_ID},{KEY}", directory]
        self._process = subprocess.Popen(serve, stderr=subprocess.DEVNULL, env={"HOME": str(directory)})
        while self._process.poll() is None and not _listens(self.port):
            time.sleep(0.05)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class ObjectStore(Reachable):
    """moto's store, and the faults that it has at the moment."""

    port: int = 0
    rules: list[Rule] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Method and path with query of each request."""

    def __post_init__(self) -> None:
        self._store = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", self.port, self._answer, threaded=True, request_handler=Quiet)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @contextmanager
    def failing(self, rule: Rule) -> Iterator[None]:
        """Let requests meet faults while the block runs."""
        self.rules.append(rule)
        try:
            yield
        finally:
            self.rules.remove(rule)

    def _answer(self, environ: Environ, start: Callable[..., Any]) -> Iterable[bytes]:
        self.requests.append((environ["REQUEST_METHOD"], f"{environ['PATH_INFO']}?{environ['QUERY_STRING']}"))
        fault = next((fault for rule in list(self.rules) if (fault := rule(environ)) is not None), None)
        if fault is None:
            return self._store(environ, start)
        if fault.breaks_after is not None:
            return _broken(self._store(environ, start), fault.breaks_after)
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        body = f"<Error><Code>{fault.code}</Code><Message>{fault.code}</Message></Error>".encode()
        start(f"{fault.status} Fault", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def always(fault: Fault, *methods: str) -> Rule:
    """Every request with one of these methods, or any request, meets the fault."""
    return lambda environ: fault if not methods or environ["REQUEST_METHOD"] in methods else None


def times(count: int, fault: Fault, *methods: str) -> Rule:
    """The first requests with one of these methods meet the fault."""
    left = [count]

    def rule(environ: Environ) -> Fault | None:
        if (methods and environ["REQUEST_METHOD"] not in methods) or left[0] == 0:
            return None
        left[0] -= 1
        return fault

    return rule


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _broken(answer: Iterable[bytes], after: int) -> Iterator[bytes]:
    yield b"".join(answer)[:after]
    raise ConnectionAbortedError("as the test asks")


def main() -> None:
    """A store with one bucket as a process of its own: ``python -m tests.object_store PORT BUCKET``."""
    port, bucket = sys.argv[1:]
    store = ObjectStore(int(port))
    store.client.create_bucket(Bucket=bucket)
    threading.Event().wait()


if __name__ == "__main__":
    main()
