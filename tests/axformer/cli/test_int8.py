"""The shortest command: a checkpoint and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from axformer.cli.main import app
from axformer.forms.kinds import KINDS, ONNX, ONNX_INT8
from tests.tiny_families import tiny_family_model, tiny_family_tokenizer
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_rows, tiny_tokenizer, write_rows


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return save_tiny_checkpoint(tmp_path / "mine", tiny_config(layers=1))


def test_a_checkpoint_alone_brings_both_graphs(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("mine")
    assert done.exit_code == 0, done.output
    assert "Deploy mine-int8/hub/onnx/model_quantized.onnx: " in done.output
    assert "Nothing is claimed about accuracy; answers were compared on 24 built-in sentences." in done.output
    assert [name for name, kind in KINDS.items() if kind.is_in(tmp_path / "mine-int8")] == [ONNX, ONNX_INT8]
    given = tiny_tokenizer()("word1 word2", return_tensors="pt")
    loaded = KINDS[ONNX].load(tmp_path / "mine-int8" / "hub", "cpu")
    from transformers import AutoModelForSequenceClassification

    with torch.inference_mode():
        expected = AutoModelForSequenceClassification.from_pretrained(checkpoint)(**given).logits
    torch.testing.assert_close(loaded(**given).logits, expected, rtol=1e-3, atol=1e-3)
    again = run("mine")
    assert (again.exit_code, "exists and is not empty" in again.output) == (2, True)


@pytest.mark.slow
def test_rows_take_the_place_of_the_sample(checkpoint: Path, tmp_path: Path) -> None:
    texts = write_rows(tmp_path / "texts.jsonl", [{"text": row["text"]} for row in tiny_rows(30)])
    done = run("int8", checkpoint, "--data", texts, "--output", tmp_path / "out", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["rows"], told["is_sample"]) == (30, False)
    assert [form["name"] for form in told["forms"]] == [ONNX, ONNX_INT8]
    assert told["forms"][0]["same_answers"] == 1.0
    assert Path(told["forms"][1]["file"]).is_file()


@pytest.mark.slow
def test_answers_that_are_numbers_are_not_counted(tmp_path: Path) -> None:
    checkpoint = save_tiny_checkpoint(tmp_path / "numbers", tiny_config(layers=1, labels=1))
    done = run("int8", checkpoint, "--output", tmp_path / "out", "--json")
    assert done.exit_code == 0, done.output
    assert [form["same_answers"] for form in json.loads(done.stdout)["forms"]] == [None, None]


def test_what_cannot_be_done_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    from transformers import AutoModelForQuestionAnswering

    tiny_family_model("bert", AutoModelForQuestionAnswering).save_pretrained(tmp_path / "asks")
    tiny_family_tokenizer("bert").save_pretrained(tmp_path / "asks")
    refused = run("int8", tmp_path / "asks", "--output", tmp_path / "out")
    assert refused.exit_code == 2
    assert "no built-in rows for a model for question answering; give some by --data" in refused.output
    assert not (tmp_path / "out").exists()
    assert "No such command 'nowhere'" in run("nowhere").output
