"""Secrets are made of two halves, and signatures are those of the standard."""

import base64
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from standardwebhooks import Webhook

from store.errors import SigningKeyError
from store.settings import Settings
from store.signing import SigningKey, signatures, signing_key

URL = "postgresql://nobody@localhost/none"


@given(salt=st.binary(min_size=32, max_size=32), body=st.text(), other=st.binary(min_size=32, max_size=32))
def test_what_is_signed_verifies_and_nothing_else_does(salt: bytes, body: str, other: bytes) -> None:
    body = body.encode(errors="ignore").decode()
    key = SigningKey(b"k" * 32)
    secret = key.secret(salt, key.fingerprint)
    now = int(datetime.now(UTC).timestamp())
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(now),
        "webhook-signature": signatures([secret], "msg_1", now, body),
    }
    Webhook(secret).verify(body, headers, json_parse=False)
    changes = [headers | {"webhook-id": "msg_2"}, headers | {"webhook-timestamp": str(now - 1)}]
    for changed in changes:
        with pytest.raises(Exception, match="No matching signature"):
            Webhook(secret).verify(body, changed, json_parse=False)
    if other != salt:
        with pytest.raises(Exception, match="No matching signature"):
            Webhook(key.secret(other, key.fingerprint)).verify(body, headers, json_parse=False)


def test_the_example_of_the_standard() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    made = signatures([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, '{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_secret_needs_the_key_that_it_was_made_with() -> None:
    one, other = SigningKey(b"1" * 32), SigningKey(b"2" * 32)
    secret = one.secret(b"salt", one.fingerprint)
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert one.secret(b"pepper", one.fingerprint) != secret
    with pytest.raises(SigningKeyError, match=other.fingerprint):
        other.secret(b"salt", one.fingerprint)
    assert "1111" not in repr(one)


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
