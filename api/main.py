"""The web application, which ``api.server`` serves, and its process: tuned for many short requests, and asked to stop.

The web server waits for open connections before it notifies the app, so the app listens to the same signals.
"""

import gc
import logging
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from types import FrameType
from typing import Any

from fastapi import APIRouter, FastAPI

from api import openapi
from api.http import problems
from api.metrics import MeasuredMiddleware
from api.middleware.headers import AnswerHeadersMiddleware, RequestIdMiddleware
from api.middleware.limits import BodyLimitMiddleware, SheddingMiddleware
from api.pages.mount import mount, share
from api.pages.routes import new_job
from api.resources import open_resources
from api.routes import analyses, artifacts, events, health, jobs, keys, knobs, paths, queue, trace, uploads, webhooks
from axformer import __version__
from store.logs import configure_logs
from store.settings import Settings

PREFIX = "/v1"
_DESCRIPTION = (
    "Post a fine-tuned transformer and a validation set, and say what you want; a worker prunes what the model can spare; "
    "watch the trace, and download a smaller, faster model with what that costs. Every request but health and knobs needs "
    "`Authorization: Bearer KEY`; a key has the scope `read`, `write` or `admin`, each of which includes the one "
    "before it, and each route says which one it demands (`security`). Errors are `application/problem+json` (RFC 9457)."
)
_TAGS = [
    {"name": "jobs", "description": "One job is one run of the pass, one export of a model, or one analysis."},
    {"name": "trace", "description": "Every element tried, what it did to the loss, and the verdict."},
    {"name": "events", "description": "What happened to a job, as it happens."},
    {"name": "artifacts", "description": "The finished model, its plan, trace and report."},
    {"name": "uploads", "description": "Files that jobs name as `upload:ID`."},
    {"name": "queue", "description": "Where your jobs stand."},
    {"name": "webhooks", "description": "Where a job sends its events, and what became of the messages."},
    {"name": "keys", "description": "Who may ask for what, and who changed what."},
    {"name": "knobs", "description": "What a job can set."},
    {"name": "health", "description": "For those who run the service."},
]


def _configure_logs() -> None:
    """Send the web server's log lines to the same place as all others."""
    configure_logs()
    for name in ("uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True


@cache
def _routes() -> APIRouter:
    router = APIRouter()
    for part in (jobs, trace, paths, analyses, events, artifacts, uploads, queue, webhooks, keys, knobs, health):
        router.include_router(part.router, prefix=PREFIX)
    router.include_router(health.router, include_in_schema=False)  # where probes look
    return router


def create_app(settings: Settings | None = None) -> FastAPI:
    """Create an app with these settings, or with those of the environment. It connects at the first request."""
    resources = open_resources(settings or Settings.from_environment())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        _configure_logs()
        tune()
        with noticed(resources.stop):
            yield
        await resources.close()

    app = FastAPI(
        title="AxFormer",
        version=__version__,
        description=_DESCRIPTION,
        openapi_tags=_TAGS,
        docs_url=None,  # its page loads scripts from elsewhere; ``api.pages.mount`` serves them from here
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.resources = resources
    share(app, _routes())
    app.openapi = openapi.describe(app)  # type: ignore[method-assign]
    problems.install(app)
    mount(app, resources.settings)
    # The last one added is the outermost.
    app.add_middleware(
        BodyLimitMiddleware, max_bytes=resources.settings.json_max_bytes, streamed_paths={uploads.PATH, new_job.UPLOADS}
    )
    app.add_middleware(
        SheddingMiddleware,
        working=resources.settings.sessions_at_once,
        waiting=resources.settings.requests_waiting,
        seconds=resources.settings.shed_seconds,
        streamed_paths={uploads.PATH, new_job.UPLOADS},
    )
    app.add_middleware(MeasuredMiddleware, registry=resources.registry, prefix=PREFIX)
    app.add_middleware(AnswerHeadersMiddleware)
    app.add_middleware(RequestIdMiddleware)
    return app


_SWITCH_SECONDS = 0.0005
"""How long a thread may run while others wait. A request changes threads several times, and with the default of 5 ms it would
wait that long at each change while another thread is busy."""


def tune() -> None:
    """Tune the process, unless the server runs in a thread of another program."""
    if threading.current_thread() is not threading.main_thread():
        return
    sys.setswitchinterval(_SWITCH_SECONDS)
    # Present objects stay alive, and collecting over them repeatedly would delay every request.
    gc.collect()
    gc.freeze()


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def noticed(stopping: Callable[[], None]) -> Iterator[None]:
    """Call ``stopping`` when a signal asks the process to end, before the previous handler."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may listen; a server in another one is stopped by other means
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def on_signal(number: int, frame: FrameType | None) -> Any:
        stopping()
        listener = before[signal.Signals(number)]
        if callable(listener):
            listener(number, frame)

    for number in _SIGNALS:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, listener in before.items():
            signal.signal(number, listener)
