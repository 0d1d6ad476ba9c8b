"""HTTP as uvicorn speaks it, with a bound on what comes before a request's body.

The parser keeps a head in memory until it is complete, however long it is, and no part of the app sees it before.
"""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 * 2**10
"""Most bytes of a request line and its headers: what uvicorn's other parser, h11, allows, and eight times what proxies do."""
_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%s"
)
_DETAIL = f"the request line and headers are larger than {HEAD_BYTES} bytes; send less".encode()


class BoundedHeadsProtocol(HttpToolsProtocol):
    """One connection. Counted are the pieces after the one in which a head began, until it is complete."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._heads = 0
        self._is_in_head = False
        self._head_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Take a piece, and end the connection where it leaves a head incomplete that is too large."""
        heads = self._heads
        super().data_received(data)
        if not self._is_in_head or self._heads != heads:
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(_REFUSAL % (len(_DETAIL), _DETAIL))
            self.transport.close()

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._heads += 1
        self._is_in_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        """It is complete."""
        self._is_in_head = False
        super().on_headers_complete()
