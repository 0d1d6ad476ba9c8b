import os
import tarfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from store.storage.storage import LocalStorage
from store.tables.files import Artifact
from worker.base.packing import ARCHIVE_NAME, store_files
from worker.sandbox.delivery import delivered

MOST = 1_000_000


@pytest.fixture
def published(tmp_path: Path) -> Path:
    (tmp_path / "artifact" / "model").mkdir(parents=True)
    (tmp_path / "artifact" / "model" / "config.json").write_text("{}")
    (tmp_path / "artifact" / "plan.json").write_text('{"layers": []}')
    return tmp_path / "artifact"


def stored(
    published: Path, job_id: str, storage: LocalStorage, check: Callable[[], None] = lambda: None
) -> list[Artifact]:
    with ExitStack() as files:
        found = delivered(published, files, MOST)
        return store_files(found, published.with_name(ARCHIVE_NAME), job_id, storage, check)


def test_files_get_names_types_and_an_archive(tmp_path: Path, published: Path) -> None:
    rows = stored(published, "job_1", LocalStorage(tmp_path / "storage"))
    types = {row.name: row.media_type for row in rows}
    json_type = "application/json"
    assert types == {"model/config.json": json_type, "plan.json": json_type, ARCHIVE_NAME: "application/gzip"}
    with tarfile.open(published.with_name(ARCHIVE_NAME)) as archive:
        assert sorted(archive.getnames()) == ["model/config.json", "plan.json"]


def test_the_archive_depends_on_names_and_contents_alone(tmp_path: Path, published: Path) -> None:
    storage = LocalStorage(tmp_path / "storage")
    first = {row.name: row.sha256 for row in stored(published, "job_1", storage)}
    os.utime(published / "plan.json", (0, 0))
    (published / "plan.json").chmod(0o600)
    published.with_name(ARCHIVE_NAME).unlink()
    second = {row.name: row.sha256 for row in stored(published, "job_2", storage)}
    assert first == second


def test_storing_breaks_off_between_files(tmp_path: Path, published: Path) -> None:
    calls: list[int] = []

    def check() -> None:
        calls.append(1)
        if len(calls) > 1:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        stored(published, "job_1", LocalStorage(tmp_path / "storage"), check)
    assert len(list((tmp_path / "storage" / "jobs" / "job_1").iterdir())) == 1
