"""What makes one job of a form that is sent twice: a hidden field that becomes the request's idempotency key."""

import secrets

NONCE_FIELD = "nonce"
_NONCE_BYTES = 12
"""Enough that two forms of a team never have the same; it is not a secret."""
_MOST_LETTERS = 64


def form_nonce() -> str:
    """What a form that was never sent holds."""
    return secrets.token_hex(_NONCE_BYTES)


def key_of(nonce: str) -> str | None:
    """The idempotency key of a form; None if a browser has sent something that no form of ours holds."""
    return f"page-{nonce}" if nonce.isascii() and nonce.isalnum() and len(nonce) <= _MOST_LETTERS else None
