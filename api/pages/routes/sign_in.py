"""Sign in with a key, and sign out."""

from datetime import timedelta
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from api.deps import ResourcesDep, SessionDep, SettingsDep
from api.errors import NoValidKeyError
from api.pages.context import PAGE_HEADERS, Pages
from api.pages.deps import FormDep, PagesDep, SignInFormDep, VisitorDep, address_of
from api.pages.session import FORM_COOKIE, SESSION_COOKIE, SIGN_IN, forget, keep, new_nonce
from api.services import access
from store.repositories.audit import SIGNED_IN, SIGNED_OUT, note
from store.repositories.keys import end_session
from store.session import session_scope
from store.settings import Settings

router = APIRouter()


@router.get(SIGN_IN)
def show_sign_in(request: Request, pages: PagesDep, settings: SettingsDep, next: str = "/") -> Response:
    """The form."""
    return _form(request, pages, settings, next, error=None)


@router.post(SIGN_IN)
def sign_in(
    request: Request, form: SignInFormDep, pages: PagesDep, resources: ResourcesDep, settings: SettingsDep
) -> Response:
    """Sign in with a key, and redirect to where the visitor wanted to go."""
    key, wanted = str(form.get("key", "")).strip(), str(form.get("next", "/"))
    try:
        caller = access.sign_in(resources, key, address_of(request))
    except NoValidKeyError as error:
        return _form(request, pages, settings, wanted, error=f"{error.detail[0].upper()}{error.detail[1:]}.")
    session_id = new_nonce()
    with session_scope(resources.sessions) as session:
        note(session, caller, SIGNED_IN, session_id)
    answer = RedirectResponse(_own_path(wanted), 303, headers=PAGE_HEADERS)
    keep(answer, request, SESSION_COOKIE, pages.seal.session(session_id, key), settings)
    answer.delete_cookie(FORM_COOKIE, httponly=True, samesite="strict")
    return answer


@router.post("/sign-out")
def sign_out(_: FormDep, visitor: VisitorDep, session: SessionDep, settings: SettingsDep) -> Response:
    """End the session, whose cookie opens nothing from now on, and have the browser forget it."""
    end_session(session, visitor.session_id, timedelta(hours=settings.page_session_hours))
    note(session, visitor.caller, SIGNED_OUT, visitor.session_id)
    answer = RedirectResponse(SIGN_IN, 303, headers=PAGE_HEADERS)
    forget(answer)
    return answer


def _form(request: Request, pages: Pages, settings: Settings, wanted: str, *, error: str | None) -> Response:
    nonce = request.cookies.get(FORM_COOKIE) or new_nonce()
    answer = pages.answer(
        "sign_in.html",
        status=401 if error else 200,
        form_token=pages.seal.form_token(nonce),
        wanted=_own_path(wanted),
        error=error,
    )
    keep(answer, request, FORM_COOKIE, nonce, settings)
    return answer


def _own_path(wanted: str) -> str:
    """The address if it is on this site, otherwise the board, so that no link to this page can redirect elsewhere."""
    parts = urlsplit(wanted)
    is_own = wanted.startswith("/") and not parts.scheme and not parts.netloc and "\\" not in wanted
    return wanted if is_own and wanted.isprintable() else "/"
