"""The service's keys are changed while jobs, webhooks and visitors depend on the old ones, and nothing is lost."""

from datetime import timedelta

import pytest
from click.testing import Result
from cryptography.fernet import Fernet
from sqlalchemy import select, update
from sqlalchemy.orm import undefer
from typer.testing import CliRunner

from api.admin.__main__ import app as commands
from store.errors import VaultKeyError
from store.repositories.deliveries import create_secret
from store.session import session_scope
from store.settings import Settings
from store.signing import open_vault, signing_key, webhook_secret
from store.tables.jobs import Job
from store.tables.webhooks import WebhookSecret

OLD, NEW, NEWEST = (letter * 40 for letter in "abc")


@pytest.fixture
def with_keys(settings):
    """Settings with these keys."""

    def made(**keys: str) -> Settings:
        given = {
            name: value for name, value in settings if name not in ("secret_key", "old_secret_keys", "secret_keys")
        }
        return Settings(**given, **keys)

    return made


@pytest.fixture
def rotate(settings):
    """Runs the command with these keys."""

    def run(**keys: str) -> Result:
        url = {"DATABASE_URL": settings.database_url.get_secret_value(), "AXFORMER_VAR_DIR": str(settings.var_dir)}
        given = {f"AXFORMER_{name.upper()}": value for name, value in keys.items()}
        return CliRunner().invoke(commands, ["secret", "rotate"], env=url | given)

    return run


def stored(sessions, settings: Settings) -> tuple[str, str, str]:
    """A hub token, a token of a delivery and the secret of a webhook, opened with these keys."""
    with session_scope(sessions) as session:
        job = session.scalars(select(Job).options(undefer(Job.hub_token), undefer(Job.handover_token))).one()
        row = session.scalars(select(WebhookSecret)).one()
    tokens = [open_vault(settings).unlock(token) for token in (job.hub_token, job.handover_token)]
    return (*tokens, webhook_secret(settings, row.salt, row.key_fingerprint, row.sealed))


@pytest.fixture
def told(sessions, with_keys, stage, crew) -> str:
    """The secret of a webhook, made with the old key; a job has two tokens."""
    old = with_keys(secret_key=OLD)
    stage.queued()
    with session_scope(sessions) as session:
        vault = open_vault(old)
        session.execute(update(Job).values(hub_token=vault.lock("read"), handover_token=vault.lock("write")))
        return create_secret(session, crew.id, signing_key(old), timedelta(hours=1)).text


def test_what_is_stored_outlives_every_key_that_sealed_it(sessions, with_keys, rotate, told):
    assert stored(sessions, with_keys(secret_key=NEW, old_secret_keys=OLD)) == ("read", "write", told)
    with pytest.raises(VaultKeyError, match="secret rotate"):
        stored(sessions, with_keys(secret_key=NEW))
    done = rotate(secret_key=NEW, old_secret_keys=OLD)
    assert done.stdout == "the first key encrypts the tokens of 1 jobs and 1 webhook secrets; remove the old keys\n"
    assert stored(sessions, with_keys(secret_key=NEW)) == ("read", "write", told)
    with pytest.raises(VaultKeyError):
        stored(sessions, with_keys(secret_key=OLD))
    assert rotate(secret_key=NEWEST, old_secret_keys=f"{OLD}, {NEW}").exit_code == 0
    assert stored(sessions, with_keys(secret_key=NEWEST)) == ("read", "write", told)


def test_tokens_that_keys_of_their_own_have_encrypted_are_taken_over(sessions, with_keys, rotate, told):
    """As ``AXFORMER_SECRET_KEYS`` of an earlier version had them do."""
    key = Fernet.generate_key()
    with session_scope(sessions) as session:
        vault = Fernet(key)
        session.execute(update(Job).values(hub_token=vault.encrypt(b"read"), handover_token=vault.encrypt(b"write")))
    with pytest.raises(VaultKeyError):
        stored(sessions, with_keys(secret_key=OLD))
    assert rotate(secret_key=OLD, old_secret_keys=key.decode()).exit_code == 0
    assert stored(sessions, with_keys(secret_key=OLD)) == ("read", "write", told)


def test_a_new_secret_is_of_the_new_key_and_stays_derived(sessions, with_keys, rotate, stage, crew):
    stage.queued()
    new = with_keys(secret_key=NEW, old_secret_keys=OLD)
    with session_scope(sessions) as session:
        create_secret(session, crew.id, signing_key(new), timedelta(hours=1))
    assert "0 jobs and 0 webhook secrets" in rotate(secret_key=NEW, old_secret_keys=OLD).stdout
    with session_scope(sessions) as session:
        row = session.scalars(select(WebhookSecret)).one()
    assert row.sealed is None
    with pytest.raises(VaultKeyError, match="OLD_SECRET_KEYS"):
        webhook_secret(with_keys(secret_key=OLD), row.salt, row.key_fingerprint, None)


def test_where_a_key_is_missing_nothing_is_changed(sessions, with_keys, rotate, told):
    refused = rotate(secret_key=NEW, old_secret_keys=NEWEST)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith("nothing was changed: a stored secret was encrypted with none of the keys")
    assert stored(sessions, with_keys(secret_key=OLD)) == ("read", "write", told)
