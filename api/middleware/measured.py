"""Counts requests and how long they took, by method, route and status, for ``/metrics``."""

import time

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_UNKNOWN_ROUTE = "unknown"  # one label for all addresses that do not exist, however many are tried
_LABELS = ("method", "route", "status")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class MeasuredMiddleware:
    """Measure every request until its first byte is answered; streams may stay open for hours."""

    def __init__(self, app: ASGIApp, *, registry: CollectorRegistry, prefix: str) -> None:
        self._app = app
        self._prefix = prefix
        self._requests = Counter("axformer_http_requests", "Requests answered.", _LABELS, registry=registry)
        self._seconds = Histogram(
            "axformer_http_request_seconds", "Seconds until the answer began.", _LABELS[:2], registry=registry
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begun = time.perf_counter()

        async def send_measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                method = scope["method"] if scope["method"] in _METHODS else "OTHER"
                route = self._route(scope)
                self._requests.labels(method, route, str(message["status"])).inc()
                self._seconds.labels(method, route).observe(time.perf_counter() - begun)
            await send(message)

        return await self._app(scope, receive, send_measured)

    def _route(self, scope: Scope) -> str:
        """The route's address with the names of its parameters; the framework knows it without the prefix."""
        path: str | None = getattr(scope.get("route"), "path", None)
        if path is None:
            return _UNKNOWN_ROUTE
        return f"{self._prefix}{path}" if scope["path"].startswith(f"{self._prefix}/") else path
