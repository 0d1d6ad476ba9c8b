"""Teams and keys from the command line, as an operator types it."""

import re

import pytest
from click.testing import Result
from typer.testing import CliRunner

from api.admin.__main__ import app as commands
from axformer.wire.devices import Device
from store.repositories.workers import note_worker
from store.session import session_scope


@pytest.fixture
def admin(settings):
    """Runs a command with the settings of this test."""

    def run(*words: str, database_url: str | None = None) -> Result:
        url = settings.database_url.get_secret_value() if database_url is None else database_url
        return CliRunner().invoke(commands, words, env={"DATABASE_URL": url})

    return run


def test_settings_that_do_not_hold_are_one_line_also_where_a_rule_names_no_field(admin, monkeypatch):
    monkeypatch.setenv("AXFORMER_SECRET_KEYS", "a")
    refused = admin("team", "show")
    assert refused.exit_code != 0
    assert "name its keys in AXFORMER_OLD_SECRET_KEYS" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_team_is_made_gets_keys_and_loses_one(admin, client):
    made = admin("team", "create", "reviewers")
    assert (made.exit_code, made.stderr) == (0, "")
    first = re.search(r"axk_(\w+)_\w+", made.stdout)
    second = admin("key", "create", "reviewers", "--name", "laptop").stdout.strip()

    def status(key: str) -> int:
        return client.get("/v1/jobs", headers={"Authorization": f"Bearer {key}"}).status_code

    assert (status(first[0]), status(second)) == (200, 200)
    refused = admin("key", "revoke", first[1])
    assert (refused.exit_code, "make another first" in refused.stderr) == (2, True)
    assert admin("key", "revoke", first[1], "--even-last").stdout == f"revoked {first[1]}\n"
    assert (status(first[0]), status(second)) == (401, 200)


def test_keys_have_a_scope_and_an_end_and_are_replaced(admin, api, crew):
    made = admin("key", "create", "crew", "--name", "ci", "--scope", "read", "--days", "90").stdout.strip()
    key_id = made.split("_")[1]
    new = admin("key", "rotate", key_id, "--hours", "0").stdout.strip()
    assert api.get("/v1/me", headers={"Authorization": f"Bearer {made}"}).status_code == 401
    me = api.get("/v1/me", headers={"Authorization": f"Bearer {new}"}).json()["key"]
    assert (me["name"], me["scopes"]) == ("ci", ["read"])
    assert me["expires_at"] is not None
    lines = admin("key", "list", "crew").stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"{me['id']} read 'ci'",
        f"{key_id} read 'ci'",
        f"{crew.key.split('_')[1]} admin 'test'",
    ]
    entries = api.get("/v1/audit").json()["data"]
    assert [entry["action"] for entry in entries] == ["key.refused", "key.rotate", "key.create"]
    assert {(entry["key_id"], entry["address"]) for entry in entries[1:]} == {(None, None)}


def test_limits_of_a_team_are_set_shown_and_taken_away(admin, crew, rivals, stage):
    stage.running()
    stage.queued()
    changed = admin("team", "limit", "crew", "--running", "2", "--stored", "20GB")
    assert changed.exit_code == 0
    shown = f"crew ({crew.id}): running 1 of 2; queued 1, no limit; stored_bytes 0 of 20000000000\n"
    assert changed.stdout == shown
    assert admin("team", "show", "crew").stdout == shown
    again = admin("team", "limit", "crew", "--running", "none", "--queued", "0").stdout
    assert again == f"crew ({crew.id}): running 1, no limit; queued 1 of 0; stored_bytes 0 of 20000000000\n"
    timed = admin("team", "limit", "crew", "--seconds", "7200").stdout
    assert timed.endswith("20000000000; 7200 seconds for a job\n")
    assert admin("team", "limit", "crew", "--seconds", "none").stdout == again
    assert admin("team", "show").stdout.splitlines() == [
        again.strip(),
        f"rivals ({rivals.id}): running 0, no limit; queued 0, no limit; stored_bytes 0, no limit",
    ]


def test_credentials_are_granted_shown_and_taken_away(admin, api, crew):
    def shown(*places: str) -> str:
        done = admin("team", "grant", "crew", *places)
        assert (done.exit_code, done.stdout) == (0, admin("team", "show", "crew").stdout)
        return done.stdout.strip().rpartition("; ")[2]

    assert shown("s3://models", "hf://acme") == "credentials for hf://acme s3://models"
    assert shown("s3://*") == "credentials for s3://*"
    assert shown("none") == "stored_bytes 0, no limit"
    noted = [entry["object_id"] for entry in api.get("/v1/audit").json()["data"] if entry["action"] == "team.grant"]
    assert noted == ["none", "s3://*", "s3://models", "hf://acme"]


def test_what_cannot_be_done_is_one_line_and_status_2(admin, crew):
    refusals = [
        (("team", "create", "crew"), {}, "there is a team 'crew' already"),
        (("key", "create", "nobody"), {}, "there is no team 'nobody'"),
        (("key", "revoke", "0" * 16), {}, "there is no key with the id"),
        (("team", "limit", "nobody", "--running", "1"), {}, "there is no team 'nobody'"),
        (("team", "limit", "crew", "--running", "-1"), {}, "--running=-1 is not a limit; give a whole number"),
        (("team", "limit", "crew", "--seconds", "0"), {}, "--seconds=0 is not a limit; give a whole number from 1"),
        (("team", "grant", "crew", "s3://models/a"), {}, "'s3://models/a' is no bucket"),
        (("team", "grant", "crew", "none", "hf://a"), {}, "'none' is no bucket"),
        (("worker", "drain", "gone:1"), {}, "there is no worker 'gone:1'"),
        (("team", "limit", "crew", "--stored", "much"), {}, "--stored=much is not a limit; give bytes"),
        (("team", "create", "x"), {"database_url": "mysql://secret@host/db"}, "not a PostgreSQL address"),
        (("team", "create", "x"), {"database_url": "postgresql://nobody@127.0.0.1:1/x"}, "does not answer"),
    ]
    for words, options, says in refusals:
        refused = admin(*words, **options)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert says in refused.stderr
        assert refused.stderr.count("\n") == 1
        assert "secret" not in refused.stderr


def test_an_operator_sees_and_ends_the_jobs_of_every_team(admin, api, stage):
    running, queued = stage.running([]), stage.queued()
    lines = admin("job", "list").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [[running, "crew"], [queued, "crew"]]
    assert re.search(r" on \S+ for 0 min: ", lines[0])
    assert admin("job", "cancel", queued).stdout == f"{queued} is cancelled\n"
    assert admin("job", "cancel", running).stdout == f"{running} is cancelling\n"
    assert api.get(f"/v1/jobs/{queued}").json()["state"] == "cancelled"
    assert [line.split()[0] for line in admin("job", "list").stdout.splitlines()] == [running]
    again = admin("job", "cancel", "job_nowhere")
    assert (again.exit_code, "there is no job 'job_nowhere'; job list" in again.stderr) == (2, True)


def test_an_operator_drains_a_worker(admin, sessions):
    with session_scope(sessions) as session:
        note_worker(session, "host:1", "host:2", "axformer", Device.CPU)
    assert admin("worker", "list").stdout == "host:1 cpu: seen 0 min ago\n"
    assert admin("worker", "drain", "host:1").stdout.startswith("host:1 takes no more jobs")
    assert admin("worker", "list").stdout == "host:1 cpu: seen 0 min ago, takes no more jobs\n"
