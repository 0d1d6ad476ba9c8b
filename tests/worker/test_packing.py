import os
import tarfile
from pathlib import Path

import pytest

from store.storage import LocalStorage
from worker.packing import ARCHIVE_NAME, store_files


@pytest.fixture
def published(tmp_path: Path) -> Path:
    (tmp_path / "artifact" / "model").mkdir(parents=True)
    (tmp_path / "artifact" / "model" / "config.json").write_text("{}")
    (tmp_path / "artifact" / "plan.json").write_text('{"layers": []}')
    return tmp_path / "artifact"


def test_files_get_names_types_and_an_archive(tmp_path: Path, published: Path) -> None:
    rows = store_files(published, "job_1", LocalStorage(tmp_path / "storage"), lambda: None)
    types = {row.name: row.media_type for row in rows}
    json_type = "application/json"
    assert types == {"model/config.json": json_type, "plan.json": json_type, ARCHIVE_NAME: "application/gzip"}
    with tarfile.open(published.with_name(ARCHIVE_NAME)) as archive:
        assert sorted(archive.getnames()) == ["model/config.json", "plan.json"]


def test_the_archive_depends_on_names_and_contents_alone(tmp_path: Path, published: Path) -> None:
    storage = LocalStorage(tmp_path / "storage")
    first = {row.name: row.sha256 for row in store_files(published, "job_1", storage, lambda: None)}
    os.utime(published / "plan.json", (0, 0))
    (published / "plan.json").chmod(0o600)
    published.with_name(ARCHIVE_NAME).unlink()
    second = {row.name: row.sha256 for row in store_files(published, "job_2", storage, lambda: None)}
    assert first == second


def test_storing_breaks_off_between_files(tmp_path: Path, published: Path) -> None:
    calls: list[int] = []

    def check() -> None:
        calls.append(1)
        if len(calls) > 1:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        store_files(published, "job_1", LocalStorage(tmp_path / "storage"), check)
    assert len(list((tmp_path / "storage" / "jobs" / "job_1").iterdir())) == 1
