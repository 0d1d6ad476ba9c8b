"""Database and storage are compared, and a backup that is put back loses nothing."""

from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import update

from store.check import differences, main
from store.repositories.audit import Operator, chain, note
from store.repositories.files import add_upload
from store.session import Sessions, session_scope
from store.settings import Settings
from store.storage.storage import LocalStorage, job_folder, upload_folder
from store.tables.audit import AuditEntry
from store.tables.files import Upload
from store.tables.teams import Team
from tests.restore_drill import DATABASE, drill


def test_what_is_missing_changed_or_without_a_row_is_told(
    sessions: Sessions,
    settings: Settings,
    team: Team,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    storage, places = LocalStorage(settings.storage_dir), []
    for name in ("whole", "gone", "changed"):
        made = storage.put(upload_folder(f"upl_{name}"), [name.encode()])
        places.append(storage.path(upload_folder(f"upl_{name}"), made.sha256))
        with session_scope(sessions) as session:
            row = Upload(id=f"upl_{name}", team_id=team.id, filename="a", sha256=made.sha256, bytes=made.bytes)
            add_upload(session, row)
    assert list(differences(sessions, storage)) == []
    places[1].unlink()
    places[2].write_bytes(b"CHANGED")
    stray = storage.put(job_folder("job_gone"), [b"x"])
    found = {what: place.partition("/")[2].partition("/")[0] for what, place in differences(sessions, storage)}
    assert found == {"missing": "upl_gone", "changed": "upl_changed", "without_row": "job_gone"}
    assert {what for what, _ in differences(sessions, storage, quick=True)} == {"missing", "without_row"}
    monkeypatch.setenv("DATABASE_URL", settings.database_url.get_secret_value())
    monkeypatch.setenv("AXFORMER_VAR_DIR", str(settings.var_dir))
    monkeypatch.setattr("sys.argv", ["check"])
    assert main() == 1
    told = capsys.readouterr().out
    assert f"without_row jobs/job_gone/{stray.sha256}\n" in told
    assert told.endswith("missing: 1\nchanged: 1\nwithout_row: 1\nstorage_of_this_database: yes\n")


@pytest.mark.slow
def test_a_backup_that_is_put_back_loses_nothing(postgres_url: str, tmp_path: Path) -> None:
    try:
        drill(postgres_url, tmp_path)
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(DATABASE)))


def test_a_broken_chain_of_the_audit_log_is_told_with_status_1(
    sessions: Sessions,
    settings: Settings,
    team: Team,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DATABASE_URL", settings.database_url.get_secret_value())
    monkeypatch.setenv("AXFORMER_VAR_DIR", str(settings.var_dir))

    def checked(*words: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["check", "--quick", *words])
        return main(), capsys.readouterr().out

    with session_scope(sessions) as session:
        note(session, Operator(team.id), "key.create", "one", "two")
        head = chain(session, 10)
        note(session, Operator(team.id), "key.create", "three")
    code, said = checked("--head", str(head))
    assert code == 0
    assert f"audit_chain: whole\naudit_waiting: 1\naudit_head: {head}\n" in said
    with session_scope(sessions) as session:
        session.execute(update(AuditEntry).where(AuditEntry.link == 2).values(key_id="0f"))
    with pytest.raises(SystemExit):
        checked("--head", "7:beef")
    assert "'7:beef' is no head" in capsys.readouterr().err
    code, said = checked()
    assert code == 1
    assert "audit_chain: entry 2 was changed (id " in said
    assert ", key.create by 0f)\n" in said
