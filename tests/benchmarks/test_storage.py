"""The measurement of storages takes every way in every round, and brings back what went up."""

from pathlib import Path

import pytest

from benchmarks.storage import acts, measure, moto_server
from store.storage.storage import LocalStorage


@pytest.mark.slow
def test_every_way_brings_back_what_went_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    source = tmp_path / "result"
    source.write_bytes(b"x" * 3_000_000)
    with moto_server() as address:
        ways = acts(source, tmp_path, {"directory": LocalStorage(tmp_path / "storage")}, address)
        for up, down in ways.values():
            (tmp_path / "back").unlink(missing_ok=True)
            up()
            down()
            assert (tmp_path / "back").read_bytes() == source.read_bytes()
        assert set(measure(ways, 1)) == {"plain copy", "one plain request", "directory"}
