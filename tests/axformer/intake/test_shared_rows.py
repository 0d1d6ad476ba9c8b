"""Rows that a result was made with are found among those that tell what it is worth."""

import html
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from axformer.cli.main import app
from axformer.data.encoding import Encoded, without_labels
from axformer.intake.dataset import SHARE
from axformer.intake.parts import shared_with
from axformer.wire.report import Report
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows

IDS = st.lists(st.integers(0, 2), min_size=1, max_size=2)
SAMPLES = st.lists(st.lists(IDS, min_size=1, max_size=2), min_size=1, max_size=8)
Sample = list[list[int]]


def encoded(samples: list[Sample]) -> Encoded:
    rows = [(number, ids) for number, sample in enumerate(samples) for ids in sample]
    return without_labels({"input_ids": [ids for _, ids in rows]}, [number for number, _ in rows])


@given(measured=SAMPLES, trained=SAMPLES, deciding=SAMPLES)
def test_samples_that_are_the_same_in_all_their_rows_are_counted(
    measured: list[Sample], trained: list[Sample], deciding: list[Sample]
) -> None:
    others = {"the training rows": trained, "the rows that decide": deciding}
    found = shared_with(encoded(measured), {name: encoded(other) for name, other in others.items()})
    counts = {name: sum(sample in other for sample in measured) for name, other in others.items()}
    for name, count in counts.items():
        assert (f"{count} are also among {name}" in (found or "")) == (count > SHARE * len(measured))
    assert (found is None) == all(count <= SHARE * len(measured) for count in counts.values())


def test_choices_are_compared_one_by_one() -> None:
    one, other = ([[[1, 2], [3]], [[4], [5]]], [[[1], [2, 3]], [[4], [5]]])
    found = shared_with(without_labels({"input_ids": one}), {"the texts": without_labels({"input_ids": other})})
    assert found is not None
    assert "of its 2 rows 1 are also among the texts" in found


def test_a_few_texts_that_repeat_are_no_matter() -> None:
    samples = [[[number]] for number in range(100)]
    assert shared_with(encoded(samples), {"the texts": encoded(samples[:5])}) is None
    found = shared_with(encoded(samples), {"the texts": encoded(samples[:6])})
    assert found is not None
    assert "of its 100 rows 6 are also among the texts" in found


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    rows = tiny_rows(120)
    parts = {"validation": rows[:60], "test": rows[60:100], "train": rows[20:80], "texts": rows[80:]}
    save_tiny_checkpoint(tmp_path / "checkpoint")
    return {name: write_rows(tmp_path / f"{name}.jsonl", part) for name, part in parts.items()}


def pruned(files: dict[str, Path], **options: str) -> tuple[str, Report, list[str]]:
    """What a run says, its report, and the texts beside it."""
    home = files["test"].parent
    given = [part for name, value in options.items() for part in (f"--{name}", value)]
    knobs: dict[str, Any] = {"accept_poor_model": True, "confirm": 0.5, "max_length": None}
    (home / "knobs.json").write_text(json.dumps(knobs))
    command = (
        "prune",
        str(home / "checkpoint"),
        "--data",
        str(files["validation"]),
        "--config",
        str(home / "knobs.json"),
    )
    done = CliRunner().invoke(app, [*command, *given, "--output", str(home / "result"), "--forms", "compact"])
    assert done.exit_code == 0, done.output
    texts = [html.unescape((home / "result" / name).read_text()) for name in ("README.md", "report.html")]
    report = Report.model_validate_json((home / "result" / "report.json").read_text())
    return " ".join(done.output.split()), report, texts


def test_a_run_and_its_result_tell_of_them(files: dict[str, Path]) -> None:
    said, report, texts = pruned(files, test=str(files["test"]), train=str(files["train"]))
    held_out, confirming = report.data["test"], report.data["confirming"]
    assert held_out is not None
    assert confirming is not None
    assert held_out.doubt is not None
    assert "of its 40 rows 20 are also among the training rows" in held_out.doubt
    assert confirming.doubt is not None
    assert "are also among the training rows" in confirming.doubt
    for text in (said, report.doubt or "", *texts):
        assert f"Figures on held-out data cannot be relied on: {held_out.doubt}." in text
        assert f"What the confirming rows show cannot be relied on: {confirming.doubt}." in text
    assert f"note: test data: {held_out.doubt}" in said


def test_data_without_common_rows_is_not_doubted(files: dict[str, Path]) -> None:
    said, report, texts = pruned(files, test=str(files["test"]))
    assert [data.doubt for data in report.data.values() if data is not None] == [None] * 3
    assert report.doubt is None
    assert not any("relied on" in text for text in (said, *texts))
