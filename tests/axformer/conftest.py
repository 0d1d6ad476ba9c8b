"""A tiny checkpoint and data on disk, made once."""

from pathlib import Path

import pytest

from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("data") / "validation.jsonl", tiny_rows(40))
