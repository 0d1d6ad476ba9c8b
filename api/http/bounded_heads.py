"""Uvicorn's HTTP protocol with a limit on the request line and headers.

The parser holds a head in memory until it is complete, whatever its length, and the app cannot see it earlier.
"""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 * 2**10
"""Most bytes of a request line and its headers: the limit of uvicorn's other parser, h11, and eight times that of proxies."""
_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%s"
)
_DETAIL = f"the request line and headers are larger than {HEAD_BYTES} bytes; send less".encode()


class BoundedHeadsProtocol(HttpToolsProtocol):
    """One connection. It counts the pieces after the one in which a head began, until the head is complete."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._heads = 0
        self._is_in_head = False
        self._head_bytes = 0

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

    def on_headers_complete(self) -> None:
        """Handle the end of a head."""
        self._is_in_head = False
        super().on_headers_complete()
