"""The web server of the API: ``python -m api.server --host 0.0.0.0 --port 8000``. Uvicorn, with heads of requests bounded.

Several processes (``--workers``) share the port. Each has its own connections and its own view of the queue.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from api.http.bounded_heads import BoundedHeadsProtocol
from api.metrics import COUNTED_IN
from store.errors import StorageFullError, StorageRefusedError, StorageUnavailableError
from store.settings import Settings
from store.storage.open_storage import open_storage

_DRAIN_SECONDS = 5
"""How long the API waits for open event streams when it ends; clients reconnect by themselves."""
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
            timeout_graceful_shutdown=_DRAIN_SECONDS,
            timeout_worker_healthcheck=SILENT_SECONDS,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
