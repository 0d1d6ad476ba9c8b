"""Dependencies of page endpoints: the visitor, and the fields of a form from one of our own pages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.datastructures import FormData

from api.deps import ResourcesDep
from api.errors import NotPermittedError, NoValidKeyError
from api.pages.context import Pages
from api.pages.session import FORM_COOKIE, FORM_FIELD, FORM_HEADER, SESSION_COOKIE
from api.resources import Resources
from api.services import access
from axformer.wire.scopes import Scope
from store.repositories.keys import Caller, has_ended, is_still_valid
from store.session import session_scope

_MOST_FIELDS = 500
"""Most fields of a form; a page has some 60."""


@dataclass(frozen=True)
class Visitor:
    """A person who is signed in to the pages."""

    caller: Caller
    session_id: str
    form_token: str
    """The token that the page's forms send back."""

    @property
    def can_write(self) -> bool:
        """Whether the key may post and steer jobs."""
        return self.caller.scope.includes(Scope.WRITE)

    @property
    def is_admin(self) -> bool:
        """Whether the key may manage keys."""
        return self.caller.scope.includes(Scope.ADMIN)


async def pages(request: Request) -> Pages:
    """The resources of all pages."""
    made: Pages = request.app.state.pages
    return made


PagesDep = Annotated[Pages, Depends(pages)]


def visitor(request: Request, resources: ResourcesDep, pages: PagesDep) -> Visitor:
    """The caller that the request's cookie belongs to, read in a session of its own, as ``api.deps.caller``.

    Raises:
        NoValidKeyError: nobody is signed in, or the key is no longer valid.
        LimitReachedError: the key has made too many requests.
    """
    cookie = request.cookies.get(SESSION_COOKIE, "")
    opened = pages.seal.opened(cookie)
    with session_scope(resources.reading_sessions) as session:
        if opened is None or has_ended(session, opened[0]):
            raise NoValidKeyError("nobody is signed in, or no longer; sign in with a key of your team")
    session_id, key = opened
    caller = access.sign_in(resources, key, address_of(request))
    access.count_request(resources, caller)
    return Visitor(caller, session_id, pages.seal.form_token(cookie))


def address_of(request: Request) -> str | None:
    """The address that the request came from."""
    return request.client.host if request.client else None


def still_valid(resources: Resources, visitor: Visitor) -> bool:
    """Whether the visitor's key is valid at this moment, and nobody has signed out."""
    with session_scope(resources.reading_sessions) as opened:
        return is_still_valid(opened, visitor.caller.key_id) and not has_ended(opened, visitor.session_id)


VisitorDep = Annotated[Visitor, Depends(visitor)]


def _with_scope(scope: Scope) -> Callable[[Visitor], Visitor]:
    """A dependency: the visitor, whose key must have this scope, or NotPermittedError is raised."""

    def checked(visitor: VisitorDep) -> Visitor:
        access.check_scope(visitor.caller, scope)
        return visitor

    return checked


WriterDep = Annotated[Visitor, Depends(_with_scope(Scope.WRITE))]
AdminDep = Annotated[Visitor, Depends(_with_scope(Scope.ADMIN))]


async def form(request: Request, pages: PagesDep, _: VisitorDep) -> FormData:
    """The fields of a form that a signed-in visitor sent from one of our pages.

    Raises:
        NotPermittedError: the form is from elsewhere.
    """
    return await own_form(request, pages, SESSION_COOKIE)


async def sign_in_form(request: Request, pages: PagesDep) -> FormData:
    """The fields of the form to sign in."""
    return await own_form(request, pages, FORM_COOKIE)


FormDep = Annotated[FormData, Depends(form)]
SignInFormDep = Annotated[FormData, Depends(sign_in_form)]


async def own_form(request: Request, pages: Pages, cookie: str) -> FormData:
    """The fields of a form whose token is bound to this cookie of the browser."""
    check_origin(request.headers)
    fields = await request.form(max_files=0, max_fields=_MOST_FIELDS)
    check_token(pages, request, str(fields.get(FORM_FIELD, "")), cookie)
    return fields


def own_script(request: Request, pages: PagesDep, _: VisitorDep) -> None:
    """Check that a request without a form was sent by a script of one of our pages.

    Raises:
        NotPermittedError: it was not.
    """
    check_origin(request.headers)
    check_token(pages, request, request.headers.get(FORM_HEADER, ""), SESSION_COOKIE)


def check_token(pages: Pages, request: Request, token: str, cookie: str) -> None:
    """Check that the token was issued to the browser that sends it."""
    held = request.cookies.get(cookie, "")
    if not held or not pages.seal.is_form_token(token, held):
        raise NotPermittedError(
            "the form is too old or not from this service; go back, load the page again, and send it once more",
            code="form_token_invalid",
        )


def check_origin(headers: Mapping[str, str]) -> None:
    """Check that the browser sends this from a page of the same host.

    Browsers name the origin in every request that changes something; a request without one is not from a browser, or from
    one that hides it.

    Raises:
        NotPermittedError: the request comes from another origin, or does not name it.
    """
    origin = headers.get("origin", "")
    if headers.get("sec-fetch-site", "same-origin") != "same-origin" or urlsplit(origin).netloc != headers.get("host"):
        raise NotPermittedError(
            f"the form was sent from '{origin or 'an unnamed page'}', not from a page of this service; open the page "
            "here and send it again",
            code="foreign_origin",
        )
