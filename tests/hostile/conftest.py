"""A whole checkpoint, made once."""

from pathlib import Path

import pytest

from tests.tiny_models import save_tiny_checkpoint


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_checkpoint(tmp_path_factory.mktemp("whole"))
