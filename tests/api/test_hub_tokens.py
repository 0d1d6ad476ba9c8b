"""A hub token goes in and is not seen again: in no answer, event, log or message, and encrypted where it lies."""

import json

import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr
from structlog.testing import capture_logs

from store.errors import VaultKeyError
from store.repositories.jobs import hub_token_of
from store.session import session_scope
from store.settings import Settings
from store.signing import open_vault
from store.tables.schema import metadata

TOKEN = "hf_canary" + "x" * 28
PRIVATE = {"checkpoint": {"uri": "hf://acme/private@main"}, "hub_token": TOKEN}


def everything_stored(database_url: str) -> str:
    """All columns of all rows, as text."""
    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        rows = [
            connection.execute(sql.SQL("SELECT row_to_json(t)::text FROM {} t").format(sql.Identifier(table.name)))
            for table in metadata.sorted_tables
        ]
        return "\n".join(text for found in rows for (text,) in found)


def test_a_token_is_not_seen_again(api, body, database_url, caplog, capsys):
    with capture_logs() as logs:
        answer = api.post("/v1/jobs", json=body | PRIVATE, headers={"Idempotency-Key": "once"})
        again = api.post("/v1/jobs", json=body | PRIVATE, headers={"Idempotency-Key": "once"})
        job_id = answer.json()["id"]
        seen = [api.get(f"/v1/jobs/{job_id}{path}").text for path in ("", "/events", "/trace")]
        seen.append(api.get("/v1/jobs").text)
    assert (answer.status_code, again.json()["id"]) == (202, job_id)
    told = "".join([answer.text, again.text, *seen, repr(logs), caplog.text, *capsys.readouterr()])
    assert "canary" not in told
    assert "hub_token" not in told
    assert "canary" not in everything_stored(database_url)
    assert TOKEN.encode().hex() not in everything_stored(database_url)


def test_it_lies_encrypted_until_the_job_ends(api, body, sessions, settings, database_url):
    job_id = api.post("/v1/jobs", json=body | PRIVATE).json()["id"]
    with session_scope(sessions) as session:
        locked = hub_token_of(session, job_id)
    assert open_vault(settings).unlock(locked) == TOKEN
    api.post(f"/v1/jobs/{job_id}/cancel")
    with session_scope(sessions) as session:
        assert hub_token_of(session, job_id) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"hub_token": "hf_canary with spaces"},
        {"hub_token": "hf_canary\n"},
        {"hub_token": "hf_canary" * 100},
        {"hub_token": ["hf_canary"]},
        {"hub_token": ""},
        {
            "hub_token": "hf_canary",
            "checkpoint": {"uri": "s3://acme/model"},
            "validation": {"uri": "s3://acme/dev.csv"},
        },
    ],
)
def test_one_that_cannot_be_used_is_refused_and_not_repeated(api, body, changes):
    answer = api.post("/v1/jobs", json=body | PRIVATE | changes)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "#/hub_token")
    assert "canary" not in answer.text


def test_a_body_of_another_shape_is_not_repeated_either(api):
    answer = api.post("/v1/jobs", json=[PRIVATE])
    assert answer.status_code == 422
    assert "canary" not in answer.text


def test_keys_are_changed_without_a_gap(tmp_path):
    plain = {"database_url": SecretStr("postgresql://nowhere/none"), "var_dir": tmp_path}
    old, new = "o" * 32, "n" * 32
    before = open_vault(Settings(**plain, secret_key=old)).lock(TOKEN)
    during = open_vault(Settings(**plain, secret_key=new, old_secret_keys=f"x, {old}"))
    assert during.unlock(before) == TOKEN
    after = open_vault(Settings(**plain, secret_key=new))
    assert after.unlock(during.lock(TOKEN)) == TOKEN
    with pytest.raises(VaultKeyError, match="AXFORMER_OLD_SECRET_KEYS"):
        after.unlock(before)


def test_without_keys_one_is_made_of_the_services_own(tmp_path):
    plain = {"database_url": SecretStr("postgresql://nowhere/none")}
    here = Settings(**plain, var_dir=tmp_path / "a")
    assert open_vault(here).unlock(open_vault(here).lock(TOKEN)) == TOKEN
    with pytest.raises(VaultKeyError):
        open_vault(Settings(**plain, var_dir=tmp_path / "b")).unlock(open_vault(here).lock(TOKEN))


def test_the_schema_says_that_it_is_only_written(api):
    fields = api.get("/openapi.json").json()["components"]["schemas"]["JobCreate"]["properties"]
    assert '"writeOnly": true' in json.dumps(fields["hub_token"])
