"""A published result is its checkpoint, smaller: in the number format that came in, with all that lay beside the weights."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification

from axformer.apply import apply_plan
from axformer.artifact import load
from axformer.config import PassConfig, make_config
from axformer.data.columns import DataSource
from axformer.data.reading import read_rows
from axformer.errors import ArtifactError
from axformer.forms import make
from axformer.forms.agreement import compare_outputs
from axformer.forms.kinds import COMPACT, KINDS, ONNX, ZEROED
from axformer.forms.make import Finished
from axformer.forms.selfcheck import check_numbers
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.model.compact import compact
from axformer.model.number_format import cast, computing_in
from axformer.plan.plan import read_plan_file
from axformer.scores.measured import measure_sets, scores_of
from tests.runs import open_run
from tests.tiny_models import save_tiny_checkpoint, tiny_model

NOTES = {"sentence_transformers": {"version": "4.0.1"}, "team": ["a", 1, None]}
TEMPLATE = "{% for m in messages %}{{ m['content'] }}\r\n{% endfor %}"
GENERATION = '{"do_sample": false,   "eos_token_id": 3}'
STRANGERS = ("trainer_state.json", "README.md", "optimizer.pt", "modeling.py")


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint in bfloat16 as people have it."""
    directory = save_tiny_checkpoint(tmp_path_factory.mktemp("half"))
    cast(tiny_model(), torch.bfloat16).save_pretrained(directory)
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | NOTES | {"auto_map": {"AutoModel": "evil.Model"}}))
    (directory / "chat_template.jinja").write_bytes(TEMPLATE.encode())
    (directory / "generation_config.json").write_text(GENERATION)
    for name in STRANGERS:
        (directory / name).write_text("{}")
    return directory


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, half: Path, data: Path) -> Path:
    source, home = DataSource(str(data)), tmp_path_factory.mktemp("results") / "pruned"
    config = make_config("paper", {"majority_fraction": 0.2, "attention_top_k": None, "max_length": 10})
    run = open_run(half, source, test=source, config=config)
    list(run.trials())
    run.publish(home)
    apply_plan(read_plan_file(home), half, source, home / "more", forms=[ZEROED])
    shutil.move(home / "more" / KINDS[ZEROED].directory, home)
    return home


@pytest.fixture(scope="module")
def report(published: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((published / "report.json").read_text())
    return found


def test_weights_have_the_format_that_came_in_and_half_the_bytes(
    published: Path, half: Path, report: dict[str, Any]
) -> None:
    for name in (COMPACT, ZEROED):
        home = published / KINDS[name].directory
        weights = load_file(home / "model.safetensors")
        assert {part.dtype for part in weights.values()} == {torch.bfloat16}
        assert json.loads((home / "config.json").read_text())["dtype"] == "bfloat16"
    assert report["dtype"] == "bfloat16"
    assert "Both models were measured in bfloat16" in (published / "README.md").read_text()
    (form,) = report["forms"]
    assert (form["max_logit_difference"], form["bytes"]) == (0, report["pruned"]["bytes"])
    assert form["bytes"] == (published / "model" / "model.safetensors").stat().st_size
    assert report["base"]["bytes"] == (half / "model.safetensors").stat().st_size
    by_weight = [report[which]["bytes"] / report[which]["parameters"] for which in ("base", "pruned")]
    assert by_weight == pytest.approx([2, 2], rel=0.2)


@pytest.mark.slow
def test_a_graph_is_made_of_the_same_weights_in_float32(
    published: Path, half: Path, data: Path, tmp_path: Path
) -> None:
    checkpoint, plan = load_checkpoint(half), read_plan_file(published).plan
    samples = prepare(read_rows(str(data)), checkpoint, PassConfig(max_length=10)).samples
    model = cast(compact(checkpoint.model, checkpoint.architecture, plan), checkpoint.dtype)
    make._write_onnx(Finished(checkpoint, plan, model, samples), tmp_path)
    graph, home = KINDS[ONNX].load(tmp_path / "hub", "cpu"), tmp_path / "hub"
    assert model.dtype == torch.bfloat16
    assert {path.name for path in home.iterdir()} == {
        *("chat_template.jinja", "config.json", "onnx", "tokenizer.json", "tokenizer_config.json")
    }
    with computing_in(model, torch.float32):
        _, agreements = compare_outputs(model, {ONNX: graph}, checkpoint.task, samples)
    assert agreements[ONNX].difference < 1e-4


def test_a_model_that_overflows_at_its_own_precision_is_told(half: Path, data: Path, published: Path) -> None:
    checkpoint, plan = load_checkpoint(half), read_plan_file(published).plan
    model = cast(compact(checkpoint.model, checkpoint.architecture, plan), torch.float16)
    model.bert.embeddings.word_embeddings.weight.data.fill_(torch.inf)
    encoded = prepare(read_rows(str(data)), checkpoint, PassConfig(max_length=10)).samples.encoded
    with pytest.raises(
        ArtifactError, match=r"not numbers where it computes in float16; save the checkpoint in float32 or"
    ):
        check_numbers(model, checkpoint.tokenizer, encoded)


def test_figures_are_of_what_is_deployed(published: Path, half: Path, data: Path, report: dict[str, Any]) -> None:
    checkpoint = load_checkpoint(half)
    sets = {"validation": prepare(read_rows(str(data)), checkpoint, PassConfig(max_length=10))}
    before = AutoModelForSequenceClassification.from_pretrained(half).eval()
    for name, model in (("base", before), ("pruned", load(published))):
        assert model.dtype == torch.bfloat16
        measured = scores_of(measure_sets(model, checkpoint.task, {**sets, "test": sets["validation"]})).model_dump(
            mode="json"
        )
        for data_set in ("validation", "test"):
            assert report[name][data_set] == pytest.approx(measured[data_set], abs=0.05)
            if name == "pruned":
                assert report[name][data_set] == measured[data_set]


def test_all_that_lay_beside_the_weights_is_there_and_nothing_else(published: Path, half: Path) -> None:
    for name in (COMPACT, ZEROED):
        home = published / KINDS[name].directory
        there = {path.name for path in home.iterdir()}
        assert there == {path.name for path in half.iterdir()} - set(STRANGERS)
        assert (home / "chat_template.jinja").read_bytes() == TEMPLATE.encode()
        assert (home / "generation_config.json").read_text() == GENERATION
        assert (home / "tokenizer.json").read_bytes() == (half / "tokenizer.json").read_bytes()
        config = json.loads((home / "config.json").read_text())
        assert {key: config[key] for key in NOTES} == NOTES
        assert "auto_map" not in config
