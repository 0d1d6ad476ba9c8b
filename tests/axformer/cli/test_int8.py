"""The shortest command: a checkpoint and nothing else."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import ModelCard
from typer.testing import CliRunner

from axformer.cli.int8 import _worth
from axformer.cli.main import app
from axformer.forms.form import Form
from axformer.forms.kinds import KINDS, ONNX, ONNX_INT8
from axformer.int8 import Timed
from tests.tiny_families import tiny_family_model, tiny_family_tokenizer
from tests.tiny_models import (
    save_tiny_checkpoint,
    save_tiny_embedder,
    tiny_config,
    tiny_rows,
    tiny_tokenizer,
    write_rows,
)


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return save_tiny_checkpoint(tmp_path / "mine", tiny_config(layers=1))


@pytest.mark.slow
def test_a_checkpoint_alone_brings_both_graphs(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("mine")
    assert done.exit_code == 0, done.output
    assert "Deploy" not in done.output
    assert re.search(r"Wrote mine-int8/hub/onnx/model_quantized\.onnx: .*, \d+ of 24 answers changed\.", done.output)
    assert "Answers were compared on 24 built-in sentences." in done.output
    assert "Nothing is claimed about accuracy." in done.output
    assert [name for name, kind in KINDS.items() if kind.is_in(tmp_path / "mine-int8")] == [ONNX, ONNX_INT8]
    card = ModelCard.load(tmp_path / "mine-int8" / "hub" / "README.md")
    assert "**Nothing is claimed about accuracy**" in card.text
    assert "24 built-in English sentences" in card.text
    assert re.search(r"`onnx/model_quantized\.onnx` \| [\d.]+ \| [\d.]+% \| \S+ \| [\d.]+ \| [\d.]+ \[", card.text)
    given = tiny_tokenizer()("word1 word2", return_tensors="pt")
    loaded = KINDS[ONNX].load(tmp_path / "mine-int8" / "hub", "cpu")
    from transformers import AutoModelForSequenceClassification

    with torch.inference_mode():
        expected = AutoModelForSequenceClassification.from_pretrained(checkpoint)(**given).logits
    torch.testing.assert_close(loaded(**given).logits, expected, rtol=1e-3, atol=1e-3)
    again = run("mine")
    assert (again.exit_code, "exists and is not empty" in again.output) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [1, 2])
def test_rows_without_labels_do_for_every_head(tmp_path: Path, labels: int) -> None:
    save_tiny_checkpoint(tmp_path / "mine", tiny_config(layers=1, labels=labels))
    rows = [{"text": row["text"]} for row in tiny_rows(30)]
    done = run(
        "int8", tmp_path / "mine", "--data", write_rows(tmp_path / "rows.jsonl", rows), "--output", tmp_path / "out"
    )
    assert done.exit_code == 0, done.output
    assert "Answers were compared on 30 rows" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("interval", "same", "said"),
    [
        ((2.0, 2.2), 1.0, "2.1 times as fast with one input, 0 of 24 answers changed"),
        ((2.0, 2.2), 0.5, "2.1 times as fast with one input, 12 of 24 answers changed"),
        ((0.9, 3.3), 1.0, "not shown to be faster here, 0 of 24 answers changed"),
        ((2.0, 2.2), None, "2.1 times as fast with one input"),
    ],
)
def test_a_form_is_worth_what_was_seen(interval: tuple[float, float], same: float | None, said: str) -> None:
    assert _worth(Timed(Form(ONNX, None, 1, None), 1.0, 2.1, interval, same), 24) == said


@pytest.mark.slow
def test_of_an_embedder_it_says_how_far_vectors_moved(tmp_path: Path) -> None:
    save_tiny_embedder(tmp_path / "embedder")
    done = run("int8", tmp_path / "embedder" / "made", "--output", tmp_path / "out")
    assert done.exit_code == 0, done.output
    told = " ".join(done.output.split())
    whole, int8 = map(
        float, re.findall(r"mean cosine of ([\d.]+) to before, \d+ of 24 texts find another one nearest", told)
    )
    assert 0.9 < int8 < whole == 1.0


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


@pytest.mark.slow
def test_a_model_that_answers_questions_is_asked_about_the_sample(tmp_path: Path) -> None:
    from transformers import AutoModelForQuestionAnswering

    tiny_family_model("bert", AutoModelForQuestionAnswering).save_pretrained(tmp_path / "asks")
    tiny_family_tokenizer("bert").save_pretrained(tmp_path / "asks")
    done = run("int8", tmp_path / "asks", "--output", tmp_path / "out", "--json")
    assert done.exit_code == 0, done.output
    assert all(0 <= form["same_answers"] <= 1 for form in json.loads(done.stdout)["forms"])


def test_what_cannot_be_done_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    from transformers import AutoModelForMultipleChoice

    tiny_family_model("bert", AutoModelForMultipleChoice).save_pretrained(tmp_path / "asks")
    tiny_family_tokenizer("bert").save_pretrained(tmp_path / "asks")
    refused = run("int8", tmp_path / "asks", "--output", tmp_path / "out")
    assert refused.exit_code == 2
    assert "no built-in rows for a model for multiple choice; give some by --data" in refused.output
    assert not (tmp_path / "out").exists()
    assert "No such command 'nowhere'" in run("nowhere").output
