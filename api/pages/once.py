"""A hidden form field that becomes the idempotency key, so that a form that is sent twice creates one job."""

import secrets

NONCE_FIELD = "nonce"
_NONCE_BYTES = 12
"""Enough that two forms of a team never share one; it is not a secret."""
_MOST_LETTERS = 64


def form_nonce() -> str:
    """A nonce for a new form."""
    return secrets.token_hex(_NONCE_BYTES)


def key_of(nonce: str) -> str | None:
    """The idempotency key of a form; None if the nonce is not one of ours."""
    return f"page-{nonce}" if nonce.isascii() and nonce.isalnum() and len(nonce) <= _MOST_LETTERS else None
