"""The web application, which ``api.server`` serves."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from fastapi import APIRouter, FastAPI

from api import openapi
from api.http import problems, process
from api.metrics import MeasuredMiddleware
from api.middleware.body_limit import BodyLimitMiddleware
from api.middleware.headers import RateLimitHeadersMiddleware, RequestIdMiddleware, SecurityHeadersMiddleware
from api.pages.mount import mount, share
from api.pages.routes import new_job
from api.resources import open_resources
from api.routes import (
    analyses,
    artifacts,
    events,
    health,
    jobs,
    keys,
    knobs,
    paths,
    queue,
    trace,
    uploads,
    webhooks,
)
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
    for part in (
        jobs,
        trace,
        paths,
        analyses,
        events,
        artifacts,
        uploads,
        queue,
        webhooks,
        keys,
        knobs,
        health,
    ):
        router.include_router(part.router, prefix=PREFIX)
    router.include_router(health.router, include_in_schema=False)  # where probes look
    return router


def create_app(settings: Settings | None = None) -> FastAPI:
    """Create an app with these settings, or with those of the environment. It connects at the first request."""
    resources = open_resources(settings or Settings.from_environment())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        _configure_logs()
        process.tune()
        with process.noticed(resources.stop):
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
    app.add_middleware(RateLimitHeadersMiddleware)
    app.add_middleware(MeasuredMiddleware, registry=resources.registry, prefix=PREFIX)
    app.add_middleware(SecurityHeadersMiddleware)
    app.add_middleware(RequestIdMiddleware)
    return app
