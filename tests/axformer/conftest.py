"""A tiny checkpoint, data, and a finished result on disk, made once."""

from pathlib import Path

import pytest

from axformer.config import make_config
from axformer.forms.kinds import KINDS
from axformer.intake.dataset import DataSource
from axformer.run import PruningRun
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("data") / "validation.jsonl", tiny_rows(40))


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path, data: Path) -> Path:
    """A result without hard attention, in every form."""
    config = make_config("paper", {"majority_fraction": 0.2, "hard_attention": False, "max_length": 10})
    run = PruningRun.open(checkpoint, DataSource(str(data)), test=DataSource(str(data)), config=config)
    list(run.trials())
    directory = tmp_path_factory.mktemp("results") / "pruned"
    run.publish(directory, KINDS)
    return directory
