"""The API behind its real server, in a thread of the test's process."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from api.server import BoundedHeadsProtocol

_PATIENCE_SECONDS = 60
"""What requests under way may take when the server is to stop. Those that it cuts off leave connections open."""


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """The app on a port of its own: its address."""
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        http=BoundedHeadsProtocol,
        log_config=None,
        timeout_graceful_shutdown=_PATIENCE_SECONDS,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        app.state.resources.stop()
        server.should_exit = True
        thread.join()
