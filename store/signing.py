"""Secrets of webhooks (https://www.standardwebhooks.com), of tokens, and the key that signs results.

The signer must know a symmetric secret, so a hash of it is not enough, and there is no key management service to rely on.
Secrets are therefore not stored: each is derived from a random salt in the database and a key outside of it, or stored
encrypted where it outlives that key. Neither a copy of the database nor the key alone reveals a secret.
"""

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from axformer.wire.provenance import Envelope, EnvelopeSignature, signed_bytes
from store.errors import VaultKeyError
from store.settings import Settings

SALT_BYTES = 32
_MARK = "whsec_"
"""Prefix of secrets in the standard."""
_OF_WEBHOOKS = b"axformer webhook secret\0"
_KEY_FILE = "secret.key"
_KEY_BYTES = 32
_FINGERPRINT_LENGTH = 16  # hexadecimal digits; tells keys apart and gives nothing away
_PRIVATE_FILE = 0o600


@dataclass(frozen=True)
class SigningKey:
    """The service's own key."""

    value: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """Identifies this key."""
        return hashlib.sha256(b"axformer fingerprint\0" + self.value).hexdigest()[:_FINGERPRINT_LENGTH]

    def secret(self, salt: bytes) -> str:
        """The secret that a salt stands for, as receivers know it: ``whsec_`` and 32 bytes in base64."""
        made = hmac.digest(self.value, _OF_WEBHOOKS + salt, hashlib.sha256)
        return _MARK + base64.b64encode(made).decode()


def signing_key(settings: Settings) -> SigningKey:
    """The key of the settings, or else that of the file in ``var_dir``, which is created if it is missing."""
    if settings.secret_key is not None:
        return SigningKey(settings.secret_key.get_secret_value().encode())
    path = settings.var_dir / _KEY_FILE
    try:
        return SigningKey(path.read_bytes())
    except FileNotFoundError:
        _make_key(path)
        return SigningKey(path.read_bytes())


def signing_keys(settings: Settings) -> tuple[SigningKey, ...]:
    """The key, and those from before it."""
    return (signing_key(settings), *(SigningKey(key.get_secret_value().encode()) for key in settings.old_secret_keys))


def webhook_secret(settings: Settings, salt: bytes, fingerprint: str, sealed: bytes | None) -> str:
    """The secret of a row, derived, or stored encrypted.

    Raises:
        VaultKeyError: it was made or encrypted with none of the keys.
    """
    if sealed is not None:
        return open_vault(settings).unlock(sealed)
    keys = {key.fingerprint: key for key in signing_keys(settings)}
    if fingerprint not in keys:
        raise VaultKeyError(
            f"the secret was made with the key {fingerprint}, this process has {', '.join(keys)}; give api and workers "
            "the same AXFORMER_SECRET_KEY or var_dir, name the old one in AXFORMER_OLD_SECRET_KEYS, or make a new secret"
        )
    return keys[fingerprint].secret(salt)


def _make_key(path: Path) -> None:
    """Write a new key atomically; if another process was first, its key stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    incoming = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(incoming, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE_FILE), "wb") as file:
        file.write(secrets.token_hex(_KEY_BYTES).encode())
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(incoming, path)
    except FileExistsError:
        pass
    finally:
        incoming.unlink()


_OF_TOKENS = b"axformer hub token\0"
_FERNET = re.compile(b"[A-Za-z0-9_-]{43}=")
"""A key that encrypted tokens itself, as the setting AXFORMER_SECRET_KEYS of an earlier version had them."""


class Vault:
    """Encrypts with the first of its keys, and decrypts with each."""

    def __init__(self, keys: MultiFernet) -> None:
        self._keys = keys

    def lock(self, secret: str) -> bytes:
        """The secret as it may be stored."""
        return self._keys.encrypt(secret.encode())

    def unlock(self, locked: bytes) -> str:
        """The secret.

        Raises:
            VaultKeyError: none of the keys is the one that it was encrypted with.
        """
        try:
            return self._keys.decrypt(locked).decode()
        except InvalidToken:
            raise VaultKeyError(
                "a stored secret was encrypted with none of the keys of this process; give api and workers the same "
                "AXFORMER_SECRET_KEY or var_dir, and AXFORMER_OLD_SECRET_KEYS until python -m api.admin secret rotate has run"
            ) from None


def open_vault(settings: Settings) -> Vault:
    """The vault of the keys that are made of the service's own."""
    keys = signing_keys(settings)
    made = [base64.urlsafe_b64encode(hmac.digest(key.value, _OF_TOKENS, hashlib.sha256)) for key in keys]
    given = [key.value for key in keys[1:] if _FERNET.fullmatch(key.value)]
    return Vault(MultiFernet([Fernet(key) for key in [*made, *given]]))


_OF_RESULTS = b"axformer results\0"


class ResultKey:
    """The key that says which service has made a result."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private

    @property
    def public(self) -> str:
        """The public key, in PEM."""
        return self._private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def sign(self, statement: Mapping[str, Any]) -> Envelope:
        """A statement with its signature."""
        payload = json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()
        signature = self._private.sign(signed_bytes(payload))
        keyid = hashlib.sha256(self._private.public_key().public_bytes_raw()).hexdigest()
        signed = EnvelopeSignature(keyid=keyid, sig=base64.b64encode(signature).decode())
        return Envelope(payload=base64.b64encode(payload).decode(), signatures=[signed])


def result_key(settings: Settings) -> ResultKey:
    """The key of the settings, else one that is made of the service's own key."""
    if settings.result_key is not None:
        return ResultKey(Ed25519PrivateKey.from_private_bytes(base64.b64decode(settings.result_key.get_secret_value())))
    seed = hmac.digest(signing_key(settings).value, _OF_RESULTS, hashlib.sha256)
    return ResultKey(Ed25519PrivateKey.from_private_bytes(seed))
