"""Secrets are made of two halves."""

import base64
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from axformer.wire.provenance import signed_bytes
from store.errors import VaultKeyError
from store.settings import Settings
from store.signing import SigningKey, open_vault, result_key, signing_key, webhook_secret

URL = "postgresql://nobody@localhost/none"


def test_a_secret_needs_the_key_that_it_was_made_with() -> None:
    one, other = (Settings(database_url=URL, secret_key=letter * 32) for letter in "12")
    key = signing_key(one)
    secret = webhook_secret(one, b"salt", key.fingerprint, None)
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert webhook_secret(one, b"pepper", key.fingerprint, None) != secret
    with pytest.raises(VaultKeyError, match=signing_key(other).fingerprint):
        webhook_secret(other, b"salt", key.fingerprint, None)
    after = Settings(database_url=URL, secret_key="2" * 32, old_secret_keys="1" * 32)
    assert webhook_secret(after, b"salt", key.fingerprint, None) == secret
    assert "1111" not in repr(key) + repr(after)


def test_the_key_is_made_once_however_many_need_it_and_is_private(tmp_path: Path) -> None:
    settings = Settings(database_url=URL, var_dir=tmp_path / "var")
    with ThreadPoolExecutor(8) as threads:
        assert len({key.fingerprint for key in threads.map(lambda _: signing_key(settings), range(16))}) == 1
    (path,) = (tmp_path / "var").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_bytes()) == 64


def test_a_key_of_the_settings_wins_and_is_long_enough(tmp_path: Path) -> None:
    given_one = Settings(database_url=URL, var_dir=tmp_path, secret_key="s" * 32)
    assert signing_key(given_one) == SigningKey(b"s" * 32)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValidationError, match="secret_key"):
        Settings(database_url=URL, secret_key="short")


def test_what_is_derived_from_a_key_stays_as_it_was_first_derived(tmp_path: Path) -> None:
    """Receivers hold the secrets, and the database holds tokens that were encrypted earlier."""
    settings = Settings(database_url=URL, var_dir=tmp_path, secret_key="0123456789abcdef" * 2)
    key = signing_key(settings)
    secret = key.secret(bytes(range(32)))
    assert secret == "whsec_rhrRJKOWM6b8gH1EG4q2QF4WcysCVTEjoDEiPYQO3QY="
    token = Fernet("2jW_qHQhuhpFCA9nkpazCAHfhs4ZRx6X2wtREqN2Y1A=").encrypt(b"hf_token")
    assert open_vault(settings).unlock(token) == "hf_token"


def test_results_are_signed_by_a_key_of_their_own_or_of_the_settings(tmp_path: Path) -> None:
    made = result_key(Settings(database_url=URL, var_dir=tmp_path))
    again = result_key(Settings(database_url=URL, var_dir=tmp_path))
    other = result_key(Settings(database_url=URL, var_dir=tmp_path / "other"))
    seed = base64.b64encode(b"k" * 32).decode()
    given = result_key(Settings(database_url=URL, var_dir=tmp_path, result_key=seed))
    assert made.public == again.public
    assert len({made.public, other.public, given.public}) == 3
    envelope = given.sign({"a": 1})
    key = Ed25519PrivateKey.from_private_bytes(b"k" * 32).public_key()
    key.verify(base64.b64decode(envelope.signatures[0].sig), signed_bytes(b'{"a":1}'))
    assert (envelope.statement, envelope.payloadType) == ({"a": 1}, "application/vnd.in-toto+json")
    with pytest.raises(ValidationError, match="openssl rand"):
        Settings(database_url=URL, var_dir=tmp_path, result_key="short")


def test_a_signature_covers_what_dsse_says() -> None:
    assert signed_bytes(b"hello world") == b"DSSEv1 28 application/vnd.in-toto+json 11 hello world"
