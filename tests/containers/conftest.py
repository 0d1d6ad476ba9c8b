"""What the tests of containers share: one stack, and what a job takes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers.stack import Stack, running
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    with running() as stack:
        yield stack


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("inputs")
    rows = write_rows(place / "rows.jsonl", tiny_rows(400))
    return {"checkpoint": save_tiny_checkpoint(place / "checkpoint"), "validation": rows}
