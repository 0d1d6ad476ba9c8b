"""Mount the pages on an app. They use the same services as the API and are not part of its document."""

from functools import cache

from fastapi import APIRouter, FastAPI
from starlette.responses import HTMLResponse, Response

from api.pages import errors
from api.pages.context import FOREVER, PAGE_HEADERS, Pages
from api.pages.deps import PagesDep
from api.pages.routes import board, compare, job, new_analysis, new_job, path, sign_in, steering, team, trace
from store.settings import Settings

_PAGES = (sign_in, board, trace, path, job, steering, new_job, new_analysis, compare, team)
_DOCS_POLICY = PAGE_HEADERS["Content-Security-Policy"].replace("img-src 'self'", "img-src 'self' data:")
"""The style sheet of Swagger UI holds its icons."""
static = APIRouter()


@static.get("/static/{digest}/{name}")
async def get_static_file(digest: str, name: str, pages: PagesDep) -> Response:
    """A style sheet or a script."""
    content, media_type = pages.static.find(digest, name)
    return Response(content, media_type=media_type, headers={"Cache-Control": FOREVER})


@static.get("/docs")
async def get_docs(pages: PagesDep) -> Response:
    """The API described for people, by Swagger UI. It needs no key, since ``/openapi.json`` needs none."""
    return HTMLResponse(pages.text("docs.html"), headers=PAGE_HEADERS | {"Content-Security-Policy": _DOCS_POLICY})


@cache
def _routes() -> APIRouter:
    router = APIRouter()
    for part in (static, *(page.router for page in _PAGES)):
        router.include_router(part, include_in_schema=False)
    return router


def mount(app: FastAPI, settings: Settings) -> None:
    """Serve the pages, and answer people's errors with pages. Call this after the error handlers are installed."""
    pages = Pages(settings)
    app.state.pages = pages
    share(app, _routes())
    errors.install(app, pages)


def share(app: FastAPI, router: APIRouter) -> None:
    """Add what the router includes to the app; nothing of it may be an app's own.

    FastAPI reads the signatures of an included router's routes at the first request, which takes a tenth of a second, and
    keeps what it has read with the inclusion. ``include_router`` on each app would have them read for each app.
    """
    app.router.routes.extend(router.routes)
