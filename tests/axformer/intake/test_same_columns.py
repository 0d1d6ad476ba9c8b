"""Held-out and training rows are of the kind of the rows that decide: pairs where those are, labels read as theirs."""

from pathlib import Path
from typing import Any

import pytest

from axformer.data.columns import DataSource
from axformer.errors import DataError
from axformer.opening import Inputs, open_inputs
from tests.runs import run_of
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_rows, write_rows

STARS = 5


def opened(folder: Path, deciding: list[dict[str, Any]], others: list[dict[str, Any]], part: str) -> Inputs:
    config = tiny_config(labels=STARS)
    config.id2label = {index: str(index + 1) for index in range(STARS)}
    config.label2id = {name: index for index, name in config.id2label.items()}
    checkpoint = save_tiny_checkpoint(folder / "model", config)
    validation, other = write_rows(folder / "validation.jsonl", deciding), write_rows(folder / "other.jsonl", others)
    return open_inputs(run_of(checkpoint, DataSource(str(validation)), **{part: DataSource(str(other))}), "cpu")


@pytest.mark.parametrize("part", ["test", "train"])
def test_rows_that_lack_the_second_text_of_the_others_are_refused(tmp_path: Path, part: str) -> None:
    pairs, single = tiny_rows(10, pairs=True, labels=STARS), tiny_rows(10, labels=STARS)
    with pytest.raises(DataError, match=r"other\.jsonl' has no column 'text_pair', it has label, text"):
        opened(tmp_path, pairs, single, part)


@pytest.mark.parametrize("part", ["test", "train"])
def test_rows_with_a_second_text_that_the_others_lack_are_refused(tmp_path: Path, part: str) -> None:
    pairs, single = tiny_rows(10, pairs=True, labels=STARS), tiny_rows(10, labels=STARS)
    with pytest.raises(
        DataError, match=r"has second texts in its column 'text_pair', and .*validation\.jsonl' has none"
    ):
        opened(tmp_path, single, pairs, part)


@pytest.mark.parametrize("part", ["test", "train"])
def test_stars_from_one_and_stars_from_zero_do_not_go_together(tmp_path: Path, part: str) -> None:
    from_zero = tiny_rows(10, labels=STARS)
    from_one = [row | {"label": index % STARS + 1} for index, row in enumerate(from_zero)]
    with pytest.raises(DataError, match=r"are indices of classes, those of .* are names of classes"):
        opened(tmp_path, from_one, from_zero, part)
