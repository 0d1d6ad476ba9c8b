"""A directory goes however it was filled, and nothing that it links to."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.base.trees import remove_tree

names = st.text("abc.", min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
trees = st.recursive(st.none(), lambda inner: st.dictionaries(names, inner, max_size=4), max_leaves=20)


def plant(at: Path, tree: dict[str, object] | None) -> None:
    """None is a file, a dictionary a directory."""
    if tree is None:
        at.write_bytes(b"x")
        return
    at.mkdir()
    for name, inner in tree.items():
        plant(at / name, inner)  # type: ignore[arg-type]


@given(trees.filter(lambda tree: tree is not None))
@settings(max_examples=60)
def test_any_tree_goes(tmp_path_factory: pytest.TempPathFactory, tree: dict[str, object]) -> None:
    at = tmp_path_factory.mktemp("trees") / "top"
    plant(at, tree)
    assert remove_tree(at)
    assert list(at.parent.iterdir()) == []


@pytest.mark.slow
def test_a_directory_that_is_deeper_than_paths_and_recursion_go(tmp_path: Path) -> None:
    top, home = tmp_path / "top", Path.cwd()
    top.mkdir()
    try:
        os.chdir(top)
        for _ in range(3000):
            os.mkdir("a" * 200)  # noqa: PTH102 - longer than a path may be
            os.chdir("a" * 200)
    finally:
        os.chdir(home)
    assert remove_tree(top)
    assert not top.exists()


def test_links_pipes_and_directories_without_rights_go_and_what_is_elsewhere_stays(tmp_path: Path) -> None:
    elsewhere, top = tmp_path / "elsewhere", tmp_path / "top"
    elsewhere.mkdir()
    (elsewhere / "kept").write_bytes(b"x")
    top.mkdir()
    (top / "link").symlink_to(elsewhere)
    os.mkfifo(top / "pipe")
    (top / "closed" / "inner").mkdir(parents=True)
    (top / "closed" / "inner" / "link").symlink_to(elsewhere / "kept")
    (top / "closed" / "inner").chmod(0)
    (top / "closed").chmod(0)
    assert remove_tree(top)
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]
    assert (elsewhere / "kept").read_bytes() == b"x"


def test_what_is_no_directory_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path)
    assert not remove_tree(tmp_path / "file")
    assert not remove_tree(tmp_path / "link")
    assert remove_tree(tmp_path / "nothing")
    assert {path.name for path in tmp_path.iterdir()} == {"file", "link"}
