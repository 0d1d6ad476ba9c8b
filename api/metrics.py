"""Prometheus metrics: the counters of all API processes, the requests, and the number of jobs by state, counted on request."""

import os
import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from sqlalchemy.orm import Session
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from store.repositories.queue import state_counts
from store.repositories.workers import FORGOTTEN_AFTER, living_workers

COUNTED_IN = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable of ``prometheus_client``: the directory in which processes count together. Without it each counts in its
own memory."""


def counted(registry: CollectorRegistry) -> bytes:
    """The counts since the start, over all processes, in the text format of Prometheus."""
    if COUNTED_IN in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def stored(session: Session) -> bytes:
    """What the database knows: the jobs of all teams by state, and when each thread of each worker that was seen within a day
    last did its work, in the text format of Prometheus."""
    registry = CollectorRegistry()
    jobs = Gauge("axformer_jobs", "Jobs by state.", ["state"], registry=registry)
    for state, count in state_counts(session).items():
        jobs.labels(state.value).set(count)
    said = "When a worker's thread last did its work without an error, in seconds since 1970."
    times = Gauge("axformer_worker_last_success_seconds", said, ["worker", "thread"], registry=registry)
    for worker in living_workers(session, FORGOTTEN_AFTER.total_seconds()):
        for thread, at in (worker.succeeded_at or {}).items():
            times.labels(worker.name, thread).set(at)
    return generate_latest(registry)


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
