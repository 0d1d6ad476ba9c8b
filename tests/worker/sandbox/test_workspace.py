import os
import stat
from pathlib import Path

from worker.sandbox.workspace import Workspace, remove_directories

LONG_AGO = 1_000_000_000
STATE = "made/state"


def test_the_directory_is_private_and_goes_where_jobs_are(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "ahead", STATE)
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
    workspace = Workspace(tmp_path / "ahead", STATE)
    workspace.give_to(tmp_path / "work", "job_1")
    assert {path.name for path in workspace.path.parent.iterdir()} == {workspace.path.name, "job_10.abc"}
    workspace.remove()


def test_what_a_killed_worker_left_without_a_job_goes_and_what_is_held_stays(tmp_path: Path) -> None:
    held = Workspace(tmp_path / "ahead", STATE)
    left, young = tmp_path / "ahead" / "left", tmp_path / "ahead" / "young"
    for one in (left, young):
        one.mkdir()
    for one in (left, held.path):
        os.utime(one, (LONG_AGO, LONG_AGO))
    another = Workspace(tmp_path / "ahead", STATE)
    assert {path.name for path in (tmp_path / "ahead").iterdir()} == {held.path.name, young.name, another.path.name}
    held.remove()
    another.remove()


def with_state(root: Path, name: str, content: str) -> Path:
    state = root / name / STATE
    state.mkdir(parents=True)
    (state / "file").write_text(content)
    return state


def test_the_state_of_a_job_outlives_its_run_and_nothing_else_does(tmp_path: Path) -> None:
    root = tmp_path / "work"
    first = Workspace(tmp_path / "ahead", STATE)
    first.give_to(root, "job_1")
    with_state(root, first.path.name, "from the first run")
    (first.path / "secret").write_text("x")
    first.remove()
    assert [path.name for path in root.iterdir()] == ["job_1.kept"]
    assert not (root / "job_1.kept" / "secret").exists()

    other = Workspace(tmp_path / "ahead", STATE)
    other.give_to(root, "job_2")
    assert not (other.path / STATE).exists()
    second = Workspace(tmp_path / "ahead", STATE)
    (second.path / "made").mkdir()
    second.give_to(root, "job_1")
    assert (second.path / STATE / "file").read_text() == "from the first run"
    assert {path.name for path in root.iterdir()} == {second.path.name, other.path.name}
    second.remove()
    remove_directories(root, "job_1")
    other.remove()
    assert list(root.iterdir()) == []


def test_the_latest_state_that_killed_workers_left_moves_on_and_a_link_does_not(tmp_path: Path) -> None:
    root = tmp_path / "work"
    os.utime(with_state(root, "job_1.kept", "old"), (LONG_AGO, LONG_AGO))
    with_state(root, "job_1.abc", "new")
    (root / "job_1.def" / "made").mkdir(parents=True)
    (root / "job_1.def" / STATE).symlink_to(tmp_path)
    workspace = Workspace(tmp_path / "ahead", STATE)
    (workspace.path / "made").mkdir()
    workspace.give_to(root, "job_1")
    assert (workspace.path / STATE / "file").read_text() == "new"
    assert [path.name for path in root.iterdir()] == [workspace.path.name]
    workspace.remove()
