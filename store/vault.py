"""Secrets that callers give to the service for a while, encrypted where they lie (Fernet: AES in CBC mode, with an HMAC)."""

import base64
import hashlib
import hmac

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from store.errors import VaultKeyError
from store.settings import Settings
from store.signing import signing_key

_PURPOSE = b"axformer hub token\0"


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
                "a stored token was encrypted with none of the keys of this process; give api and workers the same "
                "AXFORMER_SECRET_KEYS, or the same AXFORMER_SECRET_KEY or var_dir where there are none, and keep old keys last"
            ) from None


def open_vault(settings: Settings) -> Vault:
    """The vault of the settings' keys, else of one that is made of the service's own key."""
    if settings.secret_keys:
        return Vault(MultiFernet([Fernet(key.get_secret_value()) for key in settings.secret_keys]))
    made = hmac.digest(signing_key(settings).value, _PURPOSE, hashlib.sha256)
    return Vault(MultiFernet([Fernet(base64.urlsafe_b64encode(made))]))
