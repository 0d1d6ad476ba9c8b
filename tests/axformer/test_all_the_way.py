"""From a checkpoint on disk to a published model that loads, for every task, each with another family."""

import json
from pathlib import Path

import pytest

import axformer
from axformer.config import PassConfig
from axformer.data.columns import DataSource
from axformer.data.reading import read_rows
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.model.parameters import ParameterCount
from axformer.scores.measured import measure
from tests.family_cases import SETTINGS, Case, stock_model
from tests.runs import open_run
from tests.tiny_families import tiny_family_tokenizer
from tests.tiny_models import write_rows

CASES = [
    Case("distilbert", "multi_label_classification"),
    Case("llama", "token_classification"),
    Case("modernbert", "classification"),
    Case("albert", "regression"),
    Case("mpnet", "question_answering"),
    Case("xlnet", "multiple_choice"),
    Case("deberta-v2", "masked_lm"),
    Case("gpt2", "causal_lm"),
]
QUICK = CASES[:2]
CONFIG = PassConfig(majority_fraction=0.1, max_length=24)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in CASES], ids=str
)
def test_a_checkpoint_becomes_a_smaller_model_that_measures_as_reported(case: Case, tmp_path: Path) -> None:
    stock_model(case).save_pretrained(tmp_path / "checkpoint")
    tiny_family_tokenizer(case.family).save_pretrained(tmp_path / "checkpoint")
    data = write_rows(tmp_path / "data.jsonl", SETTINGS[case.task][2])
    source = DataSource(str(data))
    run = open_run(tmp_path / "checkpoint", source, test=source, config=CONFIG)
    trace = list(run.trials())
    report = run.publish(tmp_path / "pruned")
    assert report["task"] == case.task
    assert report["removed"], "this data lets something go"
    assert report["base"]["validation"]["loss"] == pytest.approx(trace[0].loss, rel=1e-5)
    checkpoint = load_checkpoint(tmp_path / "checkpoint")
    count = ParameterCount(checkpoint.model, checkpoint.architecture)
    assert report["pruned"]["parameters"] == count.left(run.plan) <= report["base"]["parameters"]
    samples = prepare(read_rows(str(data)), checkpoint, CONFIG).samples
    again = measure(axformer.load(tmp_path / "pruned"), checkpoint.task, samples)
    assert again.figures == pytest.approx(report["pruned"]["test"], rel=1e-5)
    assert report == json.loads((tmp_path / "pruned" / "report.json").read_text(encoding="utf-8"))
    card = (tmp_path / "pruned" / "README.md").read_text(encoding="utf-8")
    assert all(f"held-out {name.replace('_', ' ')}" in card for name in again.figures)
