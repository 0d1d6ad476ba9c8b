"""A budget nobody named comes from what is free, on this machine or in this container."""

from pathlib import Path

import psutil
import pytest

from axformer.evaluation.budget import FREE_SHARE, cache_budget, container_left, free_bytes


def test_the_knob_decides_and_else_a_share_of_what_is_free() -> None:
    assert cache_budget(0, "cpu") == 0
    assert cache_budget(12345, "cpu") == 12345
    assert 0 < cache_budget(None, "cpu") <= FREE_SHARE * psutil.virtual_memory().total
    assert 0 < free_bytes("cpu") <= psutil.virtual_memory().total


def test_a_container_has_what_its_limit_leaves(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("24000000000\n")
    (tmp_path / "memory.current").write_text("5000000000\n")
    (tmp_path / "memory.stat").write_text("anon 3000000000\ninactive_file 1500000000\n")
    assert container_left(tmp_path) == 24_000_000_000 - 5_000_000_000 + 1_500_000_000


@pytest.mark.parametrize("limit", [None, "max\n"])
def test_a_container_without_a_limit_has_none(tmp_path: Path, limit: str | None) -> None:
    if limit is not None:
        (tmp_path / "memory.max").write_text(limit)
    assert container_left(tmp_path) is None
