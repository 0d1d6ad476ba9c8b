"""Close the connection of a request when its time is over, whatever the request is doing.

A client's timeouts only measure silence, and a server that sends a byte of its headers now and then is never silent.
"""

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any


class Deadline:
    """Give :meth:`trace` to the request as its extension ``trace``; the time begins with the block."""

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> "Deadline":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._drop()

    def trace(self, name: str, info: Mapping[str, Any]) -> None:
        """Called by the HTTP client for each step; keeps a reference to each new connection."""
        if name != "connection.connect_tcp.complete":
            return
        connection: socket.socket = info["return_value"].get_extra_info("socket")
        with self._lock:
            self._drop()
            self._connection = connection.dup()  # stays valid when TLS takes the other one over
            if self.is_over:
                self._shut()

    def _end(self) -> None:
        with self._lock:
            self.is_over = True
            self._shut()

    def _shut(self) -> None:
        if self._connection is not None:
            with suppress(OSError):  # the other side was quicker
                self._connection.shutdown(socket.SHUT_RDWR)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
