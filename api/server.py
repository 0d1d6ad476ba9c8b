"""The web server of the API: ``python -m api.server --host 0.0.0.0 --port 8000``. Uvicorn, with heads of requests bounded.

Several processes (``--workers``) share the port. Each has its own connections and its own view of the queue.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.metrics import COUNTED_IN
from store.errors import StorageFullError, StorageRefusedError, StorageUnavailableError
from store.settings import Settings
from store.storage.storage import open_storage

HEAD_BYTES = 64 * 2**10
"""Most bytes of a request line and its headers: the limit of uvicorn's other parser, h11, and eight times that of proxies."""
_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%s"
)
HEAD_SECONDS = 30.0
"""How long a connection may take to send a head, from its opening or the head's first byte."""
_TOO_SLOW = _REFUSAL.replace(b"431 Request Header Fields Too Large", b"408 Request Timeout")
_SLOW_DETAIL = b"the request line and headers did not come in time; send the request again"
_DETAIL = f"the request line and headers are larger than {HEAD_BYTES} bytes; send less".encode()


class BoundedHeadsProtocol(HttpToolsProtocol):
    """One connection. It counts the pieces after the one in which a head began, until the head is complete.

    The parser holds a head in memory until it is complete, whatever its length, and the app cannot see it earlier.
    """

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._heads = 0
        self._is_in_head = False
        self._head_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a piece, and close the connection if an incomplete head has grown too large."""
        heads = self._heads
        super().data_received(data)
        if not self._is_in_head or self._heads != heads:
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(_REFUSAL % (len(_DETAIL), _DETAIL))
            self.transport.close()

    def on_message_begin(self) -> None:
        """Handle the start of a head."""
        super().on_message_begin()
        self._heads += 1
        self._is_in_head, self._head_bytes = True, 0
        if self._deadline is None:
            self._expect_head()

    def on_headers_complete(self) -> None:
        """Handle the end of a head."""
        self._is_in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        """Close a connection whose head does not come; between two requests uvicorn does, after its ``timeout_keep_alive``."""
        if not self.transport.is_closing():
            self.transport.write(_TOO_SLOW % (len(_SLOW_DETAIL), _SLOW_DETAIL))
            self.transport.close()


_DRAIN_SECONDS = 5
"""How long the API waits for open event streams when it ends; clients reconnect by themselves."""
KEEP_SECONDS = 75
"""How long a connection may be idle: longer than proxies and clients keep one, mostly a minute, so that it is they who close.
With uvicorn's 5 s a client that asked every 5 s found its connection reset now and then."""
SILENT_SECONDS = 30
"""A process that does not answer its parent for this long is replaced. Uvicorn's 5 s are too short on a busy machine."""


@contextmanager
def _counting_together(processes: int) -> Iterator[None]:
    """Have processes that start inside the ``with`` block share the counters of ``/metrics``."""
    if processes == 1:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="axformer-metrics-") as counts:
        os.environ.setdefault(COUNTED_IN, counts)
        yield


def check_storage() -> None:
    """See whether files can be stored; a storage that does not answer may do so later.

    Raises:
        StorageRefusedError: it refuses this service.
    """
    try:
        open_storage(Settings.from_environment()).check()
    except StorageRefusedError:
        raise
    except (StorageUnavailableError, StorageFullError) as error:
        sys.stderr.write(f"axformer api: {error}; requests for files are refused until then\n")


def main() -> int:
    """Run the server; return 1 if its storage refuses it."""
    parser = argparse.ArgumentParser(prog="python -m api.server", description="Serve the API and its pages.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=1, help="processes")
    given = parser.parse_args()
    try:
        check_storage()
    except StorageRefusedError as error:
        sys.stderr.write(f"axformer api: {error}\n")
        return 1
    with _counting_together(given.workers):
        uvicorn.run(
            "api.main:create_app",
            factory=True,
            host=given.host,
            port=given.port,
            workers=given.workers,
            http=BoundedHeadsProtocol,
            access_log=False,  # every request is logged with its id already
            timeout_keep_alive=KEEP_SECONDS,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
            timeout_worker_healthcheck=SILENT_SECONDS,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
