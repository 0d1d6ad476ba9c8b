"""Errors as pages for people with a browser, with the same text as the problem that a program gets.

A visitor who is no longer signed in gets the page to sign in, which leads back afterwards.
"""

import json
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import cast
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from starlette.responses import RedirectResponse, Response

from api.http.problems import MEDIA_TYPE
from api.pages.context import PAGE_HEADERS, Pages
from api.pages.session import SESSION_COOKIE

SIGN_IN = "/sign-in"
_FOR_PROGRAMS = ("/v1/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/static/")
_Handler = Callable[[Request, Exception], Response | Awaitable[Response]]


def install(app: FastAPI, pages: Pages) -> None:
    """Wrap the app's error handlers so that they answer people with a page."""
    for kind, handler in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, _for_people(cast(_Handler, handler), pages))


def wants_page(request: Request) -> bool:
    """Whether a person will see the answer."""
    return not request.url.path.startswith(_FOR_PROGRAMS) and "text/html" in request.headers.get("accept", "")


def _for_people(handler: _Handler, pages: Pages) -> _Handler:
    async def handle(request: Request, error: Exception) -> Response:
        answered = handler(request, error)
        problem = await answered if isawaitable(answered) else answered
        if not wants_page(request) or problem.media_type != MEDIA_TYPE:
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
