from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.worker.fetching.conftest import CHECKPOINT, LOOPBACK, STRANGERS, contents
from worker.fetching.errors import ReferenceForbidden, ReferenceInvalid, ReferenceMissing
from worker.fetching.fetcher import Fetcher
from worker.fetching.policy import FetchPolicy

MakeFetcher = Callable[..., Fetcher]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "model").mkdir(parents=True)
    for name, body in (CHECKPOINT | STRANGERS).items():
        (root / "model" / name).parent.mkdir(exist_ok=True)
        (root / "model" / name).write_bytes(body)
    (root / "dev.csv").write_bytes(b"rows")
    (tmp_path / "secret.csv").write_bytes(b"secret")
    return root


@pytest.fixture
def policy(root: Path) -> FetchPolicy:
    return replace(LOOPBACK, file_roots=(root,))


def test_a_directory_is_fetched_by_allowed_names(
    root: Path, policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    make_fetcher(policy).checkpoint(f"file://{root}/model", tmp_path / "model")
    assert contents(tmp_path / "model") == CHECKPOINT


def test_a_file_that_changes_later_does_not_change_the_copy(
    root: Path, policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    first = make_fetcher(policy).data(f"file://{root}/dev.csv", tmp_path / "first").path
    (root / "dev.csv").write_bytes(b"other rows")
    second = make_fetcher(policy).data(f"file://{root}/dev.csv", tmp_path / "second").path
    assert (first.read_bytes(), second.read_bytes()) == (b"rows", b"other rows")


def test_an_unchanged_file_is_taken_from_the_cache(
    root: Path, policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    first = make_fetcher(policy).data(f"file://{root}/dev.csv", tmp_path / "first").path
    second = make_fetcher(policy).data(f"file://{root}/dev.csv", tmp_path / "second").path
    assert first.stat().st_ino == second.stat().st_ino


@pytest.mark.parametrize("path", ["/secret.csv", "/root/../secret.csv", "/root/%2e%2e/secret.csv", "/root-other/a.csv"])
def test_nothing_outside_the_roots_is_read(
    policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path, path: str
) -> None:
    with pytest.raises(ReferenceForbidden, match="directory that this service reads"):
        make_fetcher(policy).data(f"file://{tmp_path}{path}", tmp_path / "validation")


def test_links_out_of_the_roots_are_refused(
    root: Path, policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    (root / "link.csv").symlink_to(tmp_path / "secret.csv")
    with pytest.raises(ReferenceForbidden):
        make_fetcher(policy).data(f"file://{root}/link.csv", tmp_path / "validation")
    (root / "model" / "merges.txt").symlink_to(tmp_path / "secret.csv")
    with pytest.raises(ReferenceForbidden):
        make_fetcher(policy).checkpoint(f"file://{root}/model", tmp_path / "model")


def test_links_inside_the_roots_are_followed(
    root: Path, policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    (root / "latest").symlink_to(root / "model")
    make_fetcher(policy).checkpoint(f"file://{root}/latest", tmp_path / "model")
    assert contents(tmp_path / "model") == CHECKPOINT


def test_without_roots_nothing_is_read(root: Path, make_fetcher: MakeFetcher, tmp_path: Path) -> None:
    with pytest.raises(ReferenceForbidden):
        make_fetcher().data(f"file://{root}/dev.csv", tmp_path / "validation")


def test_missing_files_and_wrong_kinds_are_told(
    root: Path, policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    fetcher = make_fetcher(policy)
    with pytest.raises(ReferenceMissing, match="does not exist"):
        fetcher.data(f"file://{root}/none.csv", tmp_path / "a")
    (root / "folder.csv").mkdir()
    with pytest.raises(ReferenceInvalid, match="not a file"):
        fetcher.data(f"file://{root}/folder.csv", tmp_path / "b")
    with pytest.raises(ReferenceInvalid, match="not a directory"):
        fetcher.checkpoint(f"file://{root}/dev.csv", tmp_path / "c")
    with pytest.raises(ReferenceMissing, match=r"config\.json"):
        fetcher.checkpoint(f"file://{root}", tmp_path / "d")


@pytest.mark.parametrize("name", ["circle.csv", "x" * 300 + ".csv"])
def test_paths_that_cannot_be_opened_are_told(
    root: Path, policy: FetchPolicy, make_fetcher: MakeFetcher, tmp_path: Path, name: str
) -> None:
    (root / "circle.csv").symlink_to(root / "circle.csv")
    with pytest.raises(ReferenceInvalid, match="cannot be opened"):
        make_fetcher(policy).data(f"file://{root}/{name}", tmp_path / "validation")
