"""Only rows on which two models differ need labels, and the certificate is that of all rows."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from axformer.cli.main import app
from axformer.data.columns import DataSource
from axformer.scores.paired_tests import exact_p_value
from axformer.two_models import certify_pair, disagreements
from tests.tiny_models import tiny_config, tiny_model, tiny_rows, tiny_tokenizer, write_rows


def saved(directory: Path, noise: float) -> Path:
    """A tiny classifier, or one that is near it."""
    model = tiny_model()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.classifier.parameters():
            parameter += noise * torch.randn(parameter.shape, generator=generator)
    model.save_pretrained(directory)
    tiny_tokenizer().save_pretrained(directory)
    return directory


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    directory = tmp_path_factory.mktemp("pair")
    return saved(directory / "one", 0.0), saved(directory / "other", 0.05)


def axformer(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_the_rows_that_differ_certify_all(pair: tuple[Path, Path], tmp_path: Path) -> None:
    rows = tiny_rows(120)
    unlabelled = write_rows(tmp_path / "texts.jsonl", [{"text": row["text"], "place": n} for n, row in enumerate(rows)])
    done = axformer("disagree", *pair, "--data", unlabelled, "--output", tmp_path / "needed.jsonl")
    assert done.exit_code == 0, done.output
    needed = [json.loads(line) for line in (tmp_path / "needed.jsonl").read_text().splitlines()]
    assert f"{len(needed)} of 120 rows need a label" in done.output
    assert 0 < len(needed) < 120
    labelled = write_rows(tmp_path / "labelled.jsonl", [row | {"label": rows[row["place"]]["label"]} for row in needed])
    names = tuple(map(str, pair))
    whole = certify_pair(*names, DataSource(str(write_rows(tmp_path / "all.jsonl", rows))), 20, None, "cpu")
    few = certify_pair(*names, DataSource(str(labelled)), 20, 120, "cpu")
    assert whole == few
    assert whole.gained + whole.lost > 0
    assert whole.p_value == exact_p_value(whole.gained, whole.lost, 120, 0.2)
    for points in (0.5, 100):
        told = axformer("certify", *pair, "--data", labelled, "--rows", 120, "--within-points", points)
        verdict = certify_pair(*names, DataSource(str(labelled)), points, 120, "cpu")
        assert told.exit_code == (not verdict.is_certified) == (points == 0.5)
        assert verdict.sentence in told.output


def test_a_model_agrees_with_itself(pair: tuple[Path, Path], tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.jsonl", tiny_rows(30))
    found, every = disagreements(str(pair[0]), str(pair[0]), DataSource(str(data)), "cpu")
    assert (len(found), every) == (0, 30)


def test_fewer_rows_than_there_are_and_files_that_are_there_are_refused(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    data = write_rows(tmp_path / "rows.jsonl", tiny_rows(30))
    refused = axformer("certify", *pair, "--data", data, "--rows", 29, "--within-points", 1)
    assert refused.exit_code == 2
    assert "--rows 29 is less than the 30 rows" in refused.stderr
    refused = axformer("disagree", *pair, "--data", data, "--output", data)
    assert refused.exit_code == 2
    assert "exists; choose another file" in refused.stderr


def test_one_output_is_yes_or_no_only_where_the_model_says_so(tmp_path: Path) -> None:
    model = tiny_model(tiny_config(labels=1))
    model.save_pretrained(tmp_path / "one")
    tiny_tokenizer().save_pretrained(tmp_path / "one")
    data = write_rows(tmp_path / "rows.jsonl", [{"text": row["text"]} for row in tiny_rows(30)])
    commands = ("disagree", tmp_path / "one", tmp_path / "one", "--data", data, "--output", tmp_path / "needed.jsonl")
    refused = axformer(*commands)
    assert refused.exit_code == 2
    assert "is a model for regression" in refused.stderr
    says = {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}}
    assert f"say {json.dumps(says)[1:-1]} in config.json" in " ".join(refused.stderr.split())
    config = tmp_path / "one" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | says))
    done = axformer(*commands)
    assert done.exit_code == 0, done.output
    assert "0 of 30 rows need a label" in done.output
