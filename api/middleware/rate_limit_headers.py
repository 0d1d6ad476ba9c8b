"""Add the remaining requests of a key to every answer, so that programs can slow down before they are refused."""

from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PLACE = "rate_limit_headers"


def tell_rate(scope: Scope, headers: Mapping[str, str]) -> None:
    """Add these headers to the answer to the request of this scope."""
    scope[_PLACE] = headers


class RateLimitHeadersMiddleware:
    """Add the headers that the request's key was counted with."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start" and _PLACE in scope:
                MutableHeaders(scope=message).update(scope[_PLACE])
            await send(message)

        await self._app(scope, receive, send_with_headers)
