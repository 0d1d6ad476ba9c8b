"""The signed-in visitor of a page: a key in a cookie, sealed so that only this service can read it.

The server stores which sessions were ended by signing out, and the cookie holds the key itself, not its owner. Every request
looks both up in the database, so a revoked or expired key and an ended session open no page from that moment on.
"""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from starlette.requests import Request
from starlette.responses import Response

from store.settings import Settings
from store.signing import SigningKey

SIGN_IN = "/sign-in"
"""Where the page to sign in is."""
SESSION_COOKIE = "axformer_session"
FORM_COOKIE = "axformer_form"
"""Cookie of a visitor who has not signed in; the token in the form to sign in is bound to it."""
FORM_FIELD = "form_token"
FORM_HEADER = "X-Form-Token"
_SEAL = b"axformer page session\0"
_FORM = b"axformer page form\0"
_NONCE_BYTES = 16
"""128 random bits: a nonce has to be unguessable for as long as somebody fills in a form."""


@dataclass(frozen=True)
class Seal:
    """Seals keys into cookies, and binds the tokens of forms to them."""

    keys: tuple[SigningKey, ...]
    """The first seals, all open; a form that was open when they changed is loaded again."""
    seconds: int
    """How long a sealed key may be used."""

    def session(self, session_id: str, key: str) -> str:
        """Seal a session as the content of a cookie."""
        return self._fernet().encrypt(f"{session_id} {key}".encode()).decode()

    def opened(self, cookie: str) -> tuple[str, str] | None:
        """A session's id and key; None if the cookie is too old, or not sealed by this service."""
        try:
            session_id, found, key = self._fernet().decrypt(cookie.encode(), ttl=self.seconds).decode().partition(" ")
        except InvalidToken:
            return None
        return (session_id, key) if found else None

    def form_token(self, cookie: str) -> str:
        """The token that a form from a browser with this cookie must send."""
        return hmac.new(self.keys[0].value, _FORM + cookie.encode(), hashlib.sha256).hexdigest()

    def is_form_token(self, token: str, cookie: str) -> bool:
        """Whether a form's token belongs to the browser's cookie."""
        return hmac.compare_digest(token.encode(), self.form_token(cookie).encode())

    def _fernet(self) -> MultiFernet:
        digests = [hmac.digest(key.value, _SEAL, hashlib.sha256) for key in self.keys]
        return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])


def new_nonce() -> str:
    """The content of a form cookie, or the id of a session."""
    return secrets.token_urlsafe(_NONCE_BYTES)


def keep(response: Response, request: Request, name: str, value: str, settings: Settings) -> None:
    """Set a cookie that scripts cannot read and other sites cannot send."""
    response.set_cookie(
        name,
        value,
        max_age=int(settings.page_session_hours * 3600),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def forget(response: Response) -> None:
    """Delete the session's cookie."""
    response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict")
