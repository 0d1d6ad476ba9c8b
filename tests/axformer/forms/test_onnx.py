"""The law of the ONNX forms: what a runtime computes from the file is what the model in memory computes."""

import shutil
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import Tensor, nn

import axformer.auto  # noqa: F401 - registers the compact models
from axformer.errors import ArtifactError, FormError
from axformer.forms.agreement import compare_outputs
from axformer.forms.kinds import KINDS, ONNX_FP16
from axformer.forms.onnx import GRAPH_FILE, write_onnx
from axformer.forms.onnx_fp16 import HALF_FILE, write_onnx_fp16
from axformer.forms.onnx_int8 import QUANTIZED_FILE, write_onnx_int8
from axformer.forms.onnx_model import OnnxModel, load_fp16
from axformer.forms.smoothing import some_inputs
from axformer.intake.dataset import DataSet
from axformer.model.compact import compact
from axformer.scores.measured import measure
from tests.axformer.forms.uneven_data import uneven_data
from tests.family_cases import Case, checkpoint_of, some_plan, stock_model
from tests.shallow import shallow

TOLERANCE = 1e-4
ROUNDING = 0.2
"""Of int8: the root of the mean squared difference, as a share of the outputs' standard deviation."""
CASES = [
    Case("bert", "classification"),
    Case("distilbert", "question_answering"),
    Case("roberta", "multiple_choice"),
    Case("albert", "masked_lm"),
    Case("gpt2", "causal_lm"),
    Case("llama", "token_classification"),
]
BERT = CASES[0]
cases = pytest.mark.parametrize(
    "case", [BERT, *(pytest.param(case, marks=pytest.mark.slow) for case in CASES[1:])], ids=str
)


@cache
def model_of(case: Case) -> Any:
    """A model with a removed and an emptied block, cut ones, hard attention and dropped layers; each layer that is left takes
    0.7 s to export."""
    checkpoint, plan = checkpoint_of(case), some_plan(4).dropping((0, 3))
    emptied, cut = plan.of_remaining().layers
    assert (emptied.attention, emptied.heads, emptied.ffn) == (True, (), False)
    assert 0 < len(cut.heads) < 4
    assert 0 < cut.neuron_count < 48
    assert cut.hard_attention
    return compact(checkpoint.model, checkpoint.architecture, plan)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the forms are, each made once."""
    return tmp_path_factory.mktemp("forms")


def exported(case: Case, home: Path) -> Path:
    directory = home / str(case)
    if not directory.exists():
        write_onnx(model_of(case), checkpoint_of(case).tokenizer, uneven_data(case).samples.encoded, directory)
    return directory


def inputs_of(case: Case) -> list[dict[str, Any]]:
    return some_inputs(uneven_data(case).samples.encoded, checkpoint_of(case).tokenizer)


def rounded(case: Case, home: Path) -> Path:
    directory = home / f"{case}-int8"
    if not directory.exists():
        write_onnx_int8(exported(case, home), directory, inputs_of(case), threads=1)
    return directory


def rounded_model(home: Path) -> OnnxModel:
    return OnnxModel(rounded(BERT, home), graph=QUANTIZED_FILE)


def weights_in(file: Path) -> dict[str, Any]:
    graph = onnx.load(file).graph
    return {weight.name: onnx.numpy_helper.to_array(weight) for weight in graph.initializer}


def apart(model: Any, form: OnnxModel, case: Case, data: DataSet) -> float:
    """The largest difference of any logit over the data."""
    return compare_outputs(model, {"form": form}, checkpoint_of(case).task, data.samples)[1]["form"].difference


@cases
def test_exported_equals_in_memory(case: Case, home: Path) -> None:
    form = OnnxModel(exported(case, home), threads=1)
    for data in (uneven_data(case), uneven_data(case, batch_tokens=1)):
        assert len({batch.tokens for batch in data.samples.batches}) > 1
        assert apart(model_of(case), form, case, data) < TOLERANCE


@cases
def test_int8_is_close_and_small(case: Case, home: Path) -> None:
    form, samples = OnnxModel(rounded(case, home), threads=1, graph=QUANTIZED_FILE), uneven_data(case).samples
    differences, outputs = [], []
    for batch in samples.batches:
        there = batch.inputs["attention_mask"].bool()
        for name, values in form(**batch.inputs).items():
            with torch.inference_mode():
                wanted = model_of(case)(**batch.inputs)[name]
            real = there if values.shape[: there.dim()] == there.shape else torch.ones(values.shape, dtype=torch.bool)
            differences.append((values - wanted)[real].flatten())
            outputs.append(wanted[real].flatten())
    assert torch.cat(differences).square().mean().sqrt() < ROUNDING * torch.cat(outputs).std()
    assert torch.cat(differences).abs().max() > TOLERANCE, "int8 is not float32"
    graph = onnx.load(rounded(case, home) / QUANTIZED_FILE).graph
    biases = {
        name for node in graph.node if node.op_type in ("Add", "Mul") for name in node.input
    }  # a row for each head
    matrices = [
        values
        for name, values in weights_in(rounded(case, home) / QUANTIZED_FILE).items()
        if values.ndim == 2 and 1 not in values.shape and name not in biases
    ]
    assert matrices
    assert {values.dtype.name for values in matrices} == {"int8"}


def halved(case: Case, home: Path) -> Path:
    directory = home / f"{case}-fp16"
    if not directory.exists():
        write_onnx_fp16(exported(case, home), directory)
    return directory


def bytes_of_weights(file: Path) -> int:
    return sum(values.nbytes for values in weights_in(file).values())


@pytest.mark.parametrize(
    "case",
    [BERT, Case("gpt2", "classification"), *(pytest.param(case, marks=pytest.mark.slow) for case in CASES[1:])],
    ids=str,
)
def test_half_precision_is_close_and_has_half_of_the_bytes(case: Case, home: Path) -> None:
    form, kind = load_fp16(halved(case, home), "cpu"), KINDS[ONNX_FP16]
    agreement = compare_outputs(model_of(case), {"half": form}, checkpoint_of(case).task, uneven_data(case).samples)[1]
    difference, largest = agreement["half"].difference, agreement["half"].largest
    assert TOLERANCE < difference < kind.tolerance * max(1.0, largest), "half precision is not float32"
    file = halved(case, home) / HALF_FILE
    onnx.checker.check_model(onnx.load(file))
    assert bytes_of_weights(file) < 0.52 * bytes_of_weights(exported(case, home) / GRAPH_FILE)
    sides = (exported(case, home) / GRAPH_FILE, file)
    whole, half = (onnx.load(side).graph for side in sides)
    assert list(half.input) == list(whole.input)
    assert list(half.output) == list(whole.output), "float32"


@pytest.mark.slow
def test_angles_of_far_positions_are_not_rounded(home: Path) -> None:
    """At position 1,500 a half knows whole numbers only, so a rounded angle would be another one."""
    case = Case("llama", "token_classification")
    forms = OnnxModel(exported(case, home)), load_fp16(halved(case, home), "cpu")
    ids = torch.randint(5, 60, (1, 1_500), generator=torch.Generator().manual_seed(0))
    whole, half = (form(input_ids=ids, attention_mask=torch.ones_like(ids)).logits for form in forms)
    off = (whole - half).square().mean().sqrt() / whole.std()
    assert off < 0.03, (
        "few positions differ by more: hard attention looks elsewhere where two scores are nearly the same"
    )


def test_half_precision_may_have_its_weights_in_a_file_beside_the_graph(home: Path, tmp_path: Path) -> None:
    parted = shutil.copytree(exported(BERT, home), tmp_path / "parted")
    graph = onnx.load(parted / GRAPH_FILE)
    onnx.save(graph, parted / GRAPH_FILE, save_as_external_data=True, location="model.onnx.data")
    write_onnx_fp16(parted, tmp_path / "half")
    forms = load_fp16(halved(BERT, home), "cpu"), load_fp16(tmp_path / "half", "cpu")
    assert apart(forms[0], forms[1], BERT, uneven_data(BERT)) == 0.0
    assert {path.name for path in (tmp_path / "half" / "onnx").iterdir()} == {
        "model_fp16.onnx",
        "model_fp16.onnx.data",
    }


@cases
def test_only_weights_that_are_read_are_in_the_file_and_no_trace_of_the_machine(case: Case, home: Path) -> None:
    for file in (exported(case, home) / GRAPH_FILE, rounded(case, home) / QUANTIZED_FILE):
        graph = onnx.load(file).graph
        assert set(weights_in(file)) <= {name for node in graph.node for name in node.input}
        assert b".py" not in file.read_bytes()


def test_weights_may_be_in_a_file_beside_the_graph(home: Path, tmp_path: Path) -> None:
    parted = shutil.copytree(exported(BERT, home), tmp_path / "parted")
    graph = onnx.load(parted / GRAPH_FILE)
    onnx.save(graph, parted / GRAPH_FILE, save_as_external_data=True, location="model.onnx.data")
    write_onnx_int8(parted, tmp_path / "int8", inputs_of(BERT), threads=1)
    data = uneven_data(BERT)
    assert apart(model_of(BERT), OnnxModel(parted), BERT, data) < TOLERANCE
    assert apart(rounded_model(home), OnnxModel(tmp_path / "int8", graph=QUANTIZED_FILE), BERT, data) == 0.0
    assert {path.name for path in (tmp_path / "int8" / "onnx").iterdir()} == {
        "model_quantized.onnx",
        "model_quantized.onnx.data",
    }


def test_a_form_is_measured_like_a_model(home: Path) -> None:
    form, task, samples = OnnxModel(exported(BERT, home)), checkpoint_of(BERT).task, uneven_data(BERT).samples
    torch.testing.assert_close(
        measure(form, task, samples).losses, measure(model_of(BERT), task, samples).losses, rtol=1e-4, atol=1e-5
    )
    assert measure(form, task, samples).figures == pytest.approx(
        measure(model_of(BERT), task, samples).figures, abs=1e-4
    )


@pytest.mark.slow
def test_a_whole_model_without_what_its_outputs_do_not_need(tmp_path: Path) -> None:
    case = Case("distilbert", "classification")
    model = shallow(stock_model(case), [0])
    model.distilbert.nobody_s = nn.Linear(32, 7)
    before = model.config._attn_implementation
    write_onnx(model, checkpoint_of(case).tokenizer, uneven_data(case).samples.encoded, tmp_path / "form")
    assert apart(model, OnnxModel(tmp_path / "form", threads=1), case, uneven_data(case)) < TOLERANCE
    assert model.config._attn_implementation == before
    assert all(7 not in values.shape for values in weights_in(tmp_path / "form" / GRAPH_FILE).values())


class Moody(nn.Module):
    """A head that no graph can be made of: what it does depends on what it sees."""

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden if hidden.sum() > 0 else -hidden


@pytest.mark.slow
def test_a_model_that_cannot_be_exported_says_why(tmp_path: Path) -> None:
    model = compact(checkpoint_of(BERT).model, checkpoint_of(BERT).architecture, some_plan(2).dropping((1, 2, 3)))
    model.classifier = Moody()
    with pytest.raises(FormError, match=r"cannot be written as ONNX: .*data-dependent"):
        write_onnx(model, checkpoint_of(BERT).tokenizer, uneven_data(BERT).samples.encoded, tmp_path / "form")
    assert not (tmp_path / "form").exists()


@pytest.mark.parametrize("missing", ["onnx", "onnxscript"])
def test_a_missing_package_is_named_with_its_remedy(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(FormError, match=rf"package {missing}, .*pip install 'axformer\[onnx\]'"):
        write_onnx(model_of(BERT), checkpoint_of(BERT).tokenizer, uneven_data(BERT).samples.encoded, tmp_path / "form")


def test_a_missing_runtime_is_named_with_its_remedy(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = exported(BERT, home)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(FormError, match=r"package onnxruntime, .*pip install 'axformer\[onnx\]'"):
        OnnxModel(directory)


def cut_short(directory: Path) -> None:
    content = (directory / GRAPH_FILE).read_bytes()
    (directory / GRAPH_FILE).write_bytes(content[: len(content) // 2])


def overwritten(directory: Path) -> None:
    (directory / GRAPH_FILE).write_text("no graph")


def without_graph(directory: Path) -> None:
    (directory / GRAPH_FILE).unlink()


def without_facts(directory: Path) -> None:
    (directory / "config.json").unlink()


def of_transformers(directory: Path) -> None:
    model_of(BERT).config.save_pretrained(directory)


def of_another_task(directory: Path) -> None:
    text = (directory / "config.json").read_text()
    (directory / "config.json").write_text(text.replace('"logits"', '"start_logits"'))


@pytest.mark.parametrize(
    "damage", [cut_short, overwritten, without_graph, without_facts, of_transformers, of_another_task]
)
def test_a_damaged_form_is_refused(damage: Any, home: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(exported(BERT, home), tmp_path / "damaged")
    damage(damaged)
    with pytest.raises(ArtifactError, match="damaged"):
        OnnxModel(damaged)


@pytest.mark.parametrize("damage", [cut_short, overwritten, without_graph, without_facts])
@pytest.mark.parametrize(
    "write", [partial(write_onnx_int8, inputs=[], threads=1), write_onnx_fp16], ids=["int8", "fp16"]
)
def test_a_damaged_form_is_not_rounded(write: Any, damage: Any, home: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(exported(BERT, home), tmp_path / "damaged")
    damage(damaged)
    with pytest.raises(ArtifactError, match="damaged"):
        write(damaged, tmp_path / "rounded")
    assert not (tmp_path / "rounded").exists()
