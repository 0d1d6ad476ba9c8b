import os
import stat
from pathlib import Path

from worker.workspace import Workspace

LONG_AGO = 1_000_000_000


def test_the_directory_is_private_and_goes_where_jobs_are(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "ahead")
    assert stat.S_IMODE(workspace.path.stat().st_mode) == 0o700
    (workspace.path / "file").write_text("x")
    workspace.give_to(tmp_path / "work", "job_1")
    assert workspace.path.parent == tmp_path / "work"
    assert workspace.path.name.startswith("job_1.")
    assert (workspace.path / "file").read_text() == "x"
    assert stat.S_IMODE(workspace.path.parent.stat().st_mode) == 0o700
    workspace.remove()
    assert [list((tmp_path / name).iterdir()) for name in ("ahead", "work")] == [[], []]


def test_what_a_killed_worker_left_of_the_same_job_goes_and_other_jobs_stay(tmp_path: Path) -> None:
    for name in ("job_1.abc", "job_10.abc"):
        (tmp_path / "work" / name).mkdir(parents=True)
    workspace = Workspace(tmp_path / "ahead")
    workspace.give_to(tmp_path / "work", "job_1")
    assert {path.name for path in workspace.path.parent.iterdir()} == {workspace.path.name, "job_10.abc"}
    workspace.remove()


def test_what_a_killed_worker_left_without_a_job_goes_and_what_is_held_stays(tmp_path: Path) -> None:
    held = Workspace(tmp_path / "ahead")
    left, young = tmp_path / "ahead" / "left", tmp_path / "ahead" / "young"
    for one in (left, young):
        one.mkdir()
    for one in (left, held.path):
        os.utime(one, (LONG_AGO, LONG_AGO))
    another = Workspace(tmp_path / "ahead")
    assert {path.name for path in (tmp_path / "ahead").iterdir()} == {held.path.name, young.name, another.path.name}
    held.remove()
    another.remove()
