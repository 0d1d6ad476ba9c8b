"""Headers of every answer: the request's id, what a browser may do with it, and how many requests are left."""

import re
import secrets
import time
from collections.abc import Mapping

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "X-Request-ID"
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,128}")  # anything else could forge a log line
_NEW_BYTES = 16
_LOG = structlog.get_logger(__name__)


class RequestIdMiddleware:
    """Give the request its id, the caller's ``X-Request-ID`` or a new one, and log its end.

    The id appears in the answer, in every log line, and in the problem of an unexpected error.
    """

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


SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


_RATE = "rate_limit_headers"


def tell_rate(scope: Scope, headers: Mapping[str, str]) -> None:
    """Add these headers to the answer to the request of this scope."""
    scope[_RATE] = headers


class AnswerHeadersMiddleware:
    """Add what a browser may do with an answer, which is to show or save it, unless the route says otherwise, and the headers
    that the request's key was counted with, so that programs slow down before they are refused."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                headers.update(scope.get(_RATE, {}))
            await send(message)

        await self._app(scope, receive, send_with_headers)
