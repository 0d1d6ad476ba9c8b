"""Rows to train on and rows to validate with: nothing is lost, classes keep their shares, copies stay together."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from axformer.cli.main import app
from axformer.data.columns import Columns
from axformer.data.rows import Rows
from axformer.errors import ConfigError, DataError
from axformer.intake.splitting import split

LABELS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=8, max_size=60)


def rows_of(texts: list[str], labels: list[str], **more: list[object]) -> Rows:
    return Rows("all.jsonl", {"text": texts, "label": labels, **more})


@given(LABELS, st.floats(0.2, 0.8), st.integers(0, 9))
def test_every_class_gives_the_same_share_to_within_a_row_and_nothing_is_lost(
    labels: list[str], share: float, seed: int
) -> None:
    rows = rows_of([f"text {place}" for place in range(len(labels))], labels)
    train, validation = split(rows, share, seed)
    assert sorted([*train.table["text"], *validation.table["text"]]) == sorted(rows.table["text"])
    assert validation.table["text"] == sorted(validation.table["text"], key=rows.table["text"].index)
    held = Counter(validation.table["label"])
    assert all(abs(held[label] - share * count) <= 1 for label, count in Counter(labels).items())
    assert split(rows, share, seed) == (train, validation)


@given(st.lists(st.integers(0, 9), min_size=30, max_size=60), st.integers(0, 9))
def test_copies_of_an_input_stay_in_one_part_whatever_their_labels_and_ids(numbers: list[int], seed: int) -> None:
    texts = [f"text {number}" for number in [*range(10), *numbers]]
    rows = rows_of(texts, ["a", "b"] * (len(texts) // 2) + ["a"] * (len(texts) % 2), id=list(range(len(texts))))
    train, validation = split(rows, 0.3, seed)
    assert not set(train.table["text"]) & set(validation.table["text"])
    assert len(set(validation.table["text"])) == 3


def test_tags_are_drawn_without_a_balance_and_integers_get_the_names_of_their_data_set() -> None:
    table = {"tokens": [[f"word{place}"] for place in range(10)], "tags": [[place % 2] for place in range(10)]}
    train, validation = split(Rows("all", table, own_names={"tags": ("O", "B")}), 0.2, 0)
    assert (len(train), len(validation)) == (8, 2)
    assert {tag for tags in train.table["tags"] for tag in tags} == {"O", "B"}


def test_a_part_without_a_row_and_a_file_without_inputs_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"share=0\.1 of the 5 different inputs in 'all\.jsonl' leaves a part without a row"
    ):
        split(rows_of(list("abcde"), ["x"] * 5), 0.1, 0)
    with pytest.raises(DataError, match="text"):
        split(Rows("all.jsonl", {"what": ["a", "b"]}, Columns()), 0.5, 0)


def test_the_command_writes_two_files_and_no_file_twice(tmp_path: Path) -> None:
    file, output = tmp_path / "all.csv", tmp_path / "parts"
    file.write_text("review,stars\n" + "".join(f"text {place},{place % 2}\n" for place in range(40)))
    command = ["split", str(file), "--output", str(output), "--share", "0.25", "--columns", "text=review,label=stars"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "30 rows to train on and 10 to validate with" in " ".join(done.output.split())
    found = [json.loads(line) for line in (output / "validation.jsonl").read_text().splitlines()]
    assert Counter(row["stars"] for row in found) == {"0": 5, "1": 5}
    assert len((output / "train.jsonl").read_text().splitlines()) == 30
    again = CliRunner().invoke(app, command)
    assert (again.exit_code, "exists" in again.output) == (2, True)
    counts = CliRunner().invoke(app, ["split", str(file), "--output", str(tmp_path / "more"), *command[4:], "--json"])
    assert list(json.loads(counts.stdout).values()) == [30, 10]
