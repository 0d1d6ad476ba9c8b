"""A cap on bodies that are read into memory. Uploads are streamed and count their own bytes."""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import BodyTooLargeError
from api.http.problems import render


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
