"""Give every request an id: the caller's ``X-Request-ID`` or a new one. It appears in the answer, in every log line, and in
the problem of an unexpected error, so that these can be matched."""

import re
import secrets
import time

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "X-Request-ID"
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,128}")  # anything else could forge a log line
_NEW_BYTES = 16
_LOG = structlog.get_logger(__name__)


class RequestIdMiddleware:
    """Give the request its id and log its end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        given = Headers(scope=scope).get(HEADER, "")
        request_id = given if _ACCEPTED.fullmatch(given) else secrets.token_hex(_NEW_BYTES)
        scope["request_id"] = request_id
        status, begun = 500, time.perf_counter()  # the status if no answer was started

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_with_id)
            finally:
                seconds = round(time.perf_counter() - begun, 4)
                _LOG.info("request", method=scope["method"], path=scope["path"], status=status, seconds=seconds)
        return None
