"""Refuses requests at once: when those before them wait too long, so that what is taken is answered soon, and the rest is told
so; and when their body, which is read into memory, is too large. Uploads are streamed and count their own bytes."""

import time
from collections.abc import Collection
from itertools import islice

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import BodyTooLargeError, UnavailableError
from api.http.problems import render

_RETRY_AFTER = {"Retry-After": "2"}
_UNCOUNTED = ("/healthz", "/v1/healthz")
"""What probes ask, which waits for nothing: a busy process is alive."""


class SheddingMiddleware:
    """Counts the requests that have arrived and whose answer has not begun: uploads apart, those above ``working`` wait for a
    session. One whose body is still on its way waits for its sender.

    One more is refused where ``waiting`` others wait, half of them for one sender, or where the first of them has waited for
    ``seconds``.
    """

    def __init__(
        self, app: ASGIApp, *, working: int, waiting: int, seconds: float, streamed_paths: Collection[str]
    ) -> None:
        self._app = app
        self._working, self._most, self._seconds = working, working + waiting, seconds
        self._most_of_one = working + waiting // 2
        self._uncounted = frozenset((*_UNCOUNTED, *streamed_paths))
        self._began: dict[object, tuple[float, bytes]] = {}
        """Since when each request waits, in their order, and who sent it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or scope["path"] in self._uncounted:
            return await self._app(scope, receive, send)
        sender = _sender(scope)
        if self._is_full(sender):
            detail = "the service has more requests than it can answer in time; send this one again in a few seconds"
            return await render(UnavailableError(detail, code="overloaded", headers=_RETRY_AFTER), scope["path"])(
                scope, receive, send
            )
        mark, has_arrived = object(), False

        def begin() -> None:
            nonlocal has_arrived
            if not has_arrived:
                has_arrived, self._began[mark] = True, (time.monotonic(), sender)

        async def receive_marked() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                begin()
            return message

        async def send_marked(message: Message) -> None:
            self._began.pop(mark, None)
            await send(message)

        if not _has_body(scope):
            begin()
        try:
            return await self._app(scope, receive_marked, send_marked)
        finally:
            self._began.pop(mark, None)

    def _is_full(self, sender: bytes) -> bool:
        count = len(self._began)
        if count <= self._working:
            return False
        first_waiting, _ = next(islice(self._began.values(), self._working, None))
        if count >= self._most or time.monotonic() - first_waiting > self._seconds:
            return True
        return count >= self._most_of_one and (
            sum(who == sender for _, who in self._began.values()) >= self._most_of_one
        )


class BodyLimitMiddleware:
    """Refuse a body above the limit: at once if its length is declared, otherwise as soon as it exceeds the limit."""

    def __init__(self, app: ASGIApp, *, max_bytes: int, streamed_paths: Collection[str]) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._streamed_paths = frozenset(streamed_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or scope["path"] in self._streamed_paths:
            return await self._app(scope, receive, send)
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared) > self._max_bytes:
            return await render(BodyTooLargeError(self._detail), scope["path"])(scope, receive, send)
        received = 0

        async def receive_within_limit() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                # The framework turns every other error that happens while it reads a body into a 400.
                raise HTTPException(BodyTooLargeError.status, self._detail)
            return message

        return await self._app(scope, receive_within_limit, send)

    @property
    def _detail(self) -> str:
        return f"the body is larger than {self._max_bytes} bytes; send files to /v1/uploads and name them as upload:ID"


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


def _sender(scope: Scope) -> bytes:
    """Who sends a request, before anybody has looked at its key."""
    headers = dict(scope["headers"])
    address = (scope.get("client") or ("",))[0]
    return bytes(headers.get(b"authorization") or headers.get(b"cookie") or address.encode())
