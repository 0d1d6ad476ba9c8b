"""A tiny checkpoint, data, a finished pass over them, and its results on disk, each made once."""

from pathlib import Path

import pytest

from axformer.config import make_config
from axformer.data.columns import DataSource
from axformer.forms.kinds import COMPACT, KINDS, ZEROED
from axformer.run import PruningRun
from tests.runs import open_run
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("data") / "validation.jsonl", tiny_rows(40))


@pytest.fixture(scope="session")
def finished(checkpoint: Path, data: Path) -> PruningRun:
    """A finished pass without hard attention."""
    config = make_config("paper", {"majority_fraction": 0.2, "attention_top_k": None, "max_length": 10})
    run = open_run(checkpoint, DataSource(str(data)), test=DataSource(str(data)), config=config)
    list(run.trials())
    return run


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory, finished: PruningRun) -> Path:
    """Its result in the forms that PyTorch runs."""
    directory = tmp_path_factory.mktemp("results") / "pruned"
    finished.publish(directory, (COMPACT, ZEROED))
    return directory


@pytest.fixture(scope="session")
def every_form(tmp_path_factory: pytest.TempPathFactory, finished: PruningRun) -> Path:
    """Its result in every form; what ONNX needs takes most of the time."""
    directory = tmp_path_factory.mktemp("every_form") / "pruned"
    finished.publish(directory, KINDS)
    return directory
