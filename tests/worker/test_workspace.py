import stat
from pathlib import Path

import pytest

from worker.workspace import private_directory


def test_the_directory_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    with private_directory(tmp_path / "work", "job_1") as directory:
        (directory / "file").write_text("x")
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert stat.S_IMODE(directory.parent.stat().st_mode) == 0o700
    assert list((tmp_path / "work").iterdir()) == []


def test_it_is_gone_after_an_error_too(tmp_path: Path) -> None:
    with pytest.raises(MemoryError), private_directory(tmp_path / "work", "job_1"):
        raise MemoryError
    assert list((tmp_path / "work").iterdir()) == []


def test_what_a_killed_worker_left_of_the_same_job_goes_and_other_jobs_stay(tmp_path: Path) -> None:
    for name in ("job_1.abc", "job_10.abc"):
        (tmp_path / "work" / name).mkdir(parents=True)
    with private_directory(tmp_path / "work", "job_1") as directory:
        assert {path.name for path in directory.parent.iterdir()} == {directory.name, "job_10.abc"}
