"""Mount the pages on an app. They use the same services as the API and are not part of its document.

Errors are pages for people with a browser, with the same text as the problem that a program gets. A visitor who is no longer
signed in gets the page to sign in, which leads back afterwards.
"""

import json
from collections.abc import Awaitable, Callable
from functools import cache
from inspect import isawaitable
from typing import cast
from urllib.parse import urlencode

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from api.http.problems import MEDIA_TYPE
from api.pages.context import FOREVER, PAGE_HEADERS, Pages
from api.pages.deps import PagesDep
from api.pages.routes import board, compare, job, label, new_analysis, new_job, path, sign_in, team, trace
from api.pages.session import SESSION_COOKIE, SIGN_IN
from store.settings import Settings

_PAGES = (sign_in, board, trace, path, label, job, new_job, new_analysis, compare, team)
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
    _install(app, pages)


def share(app: FastAPI, router: APIRouter) -> None:
    """Add what the router includes to the app; nothing of it may be an app's own.

    FastAPI reads the signatures of an included router's routes at the first request, which takes a tenth of a second, and
    keeps what it has read with the inclusion. ``include_router`` on each app would have them read for each app.
    """
    app.router.routes.extend(router.routes)


_FOR_PROGRAMS = ("/v1/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/static/")
_Handler = Callable[[Request, Exception], Response | Awaitable[Response]]


def _install(app: FastAPI, pages: Pages) -> None:
    """Wrap the app's error handlers so that they answer people with a page."""
    for kind, handler in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, _for_people(cast(_Handler, handler), pages))


def _wants_page(request: Request) -> bool:
    """Whether a person will see the answer."""
    return not request.url.path.startswith(_FOR_PROGRAMS) and "text/html" in request.headers.get("accept", "")


def _for_people(handler: _Handler, pages: Pages) -> _Handler:
    async def handle(request: Request, error: Exception) -> Response:
        answered = handler(request, error)
        problem = await answered if isawaitable(answered) else answered
        if not _wants_page(request) or problem.media_type != MEDIA_TYPE:
            return problem
        if problem.status_code == 401 and request.method == "GET":
            return _sign_in(request)
        said = json.loads(bytes(problem.body))
        page = pages.answer(
            "error.html",
            status=problem.status_code,
            title=said["title"],
            said=said,
            request_id=said.get("request_id"),
            is_signed_in=SESSION_COOKIE in request.cookies,
        )
        for name in ("retry-after", "x-request-id", "allow"):
            if name in problem.headers:
                page.headers[name] = problem.headers[name]
        return page

    return handle


def _sign_in(request: Request) -> Response:
    """Redirect to the page to sign in, with the address to return to."""
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    wanted = "" if path == "/" else "?" + urlencode({"next": path})
    return RedirectResponse(SIGN_IN + wanted, 303, headers=PAGE_HEADERS)
