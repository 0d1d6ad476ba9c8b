"""A smoothed graph computes what it computed, and loses less by rounding where a few channels are large."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import QuantType, quantize_dynamic

from axformer.forms.onnx import GRAPH_FILE, opened, write_onnx
from axformer.forms.onnx_int8 import LINEAR
from axformer.forms.smoothing import TEXTS, smooth, some_inputs
from tests.axformer.forms.uneven_data import uneven_data
from tests.family_cases import Case, checkpoint_of

CASES = [Case("bert", "classification"), Case("gpt2", "causal_lm"), Case("roberta", "multiple_choice")]


def outputs(file: Path, inputs: list[dict[str, Any]]) -> np.ndarray:
    session = opened(file, 1)
    names = [value.name for value in session.get_inputs()]
    return np.concatenate([session.run(None, {name: one[name] for name in names})[0].ravel() for one in inputs])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_smoothed_graph_computes_the_same(case: Case, tmp_path: Path) -> None:
    checkpoint, encoded = checkpoint_of(case), uneven_data(case).samples.encoded
    write_onnx(checkpoint.model, checkpoint.tokenizer, encoded, tmp_path)
    inputs, file = some_inputs(encoded, checkpoint.tokenizer), tmp_path / GRAPH_FILE
    assert 1 < len(inputs) <= TEXTS
    graph, expected = onnx.load(file), outputs(file, inputs)
    smooth(graph, file, inputs, threads=1)
    onnx.save(graph, tmp_path / "smoothed.onnx")
    scalings = [node for node in graph.graph.node if node.op_type == "Mul" and node.output[0].endswith("_smooth")]
    assert len(scalings) >= 4 * checkpoint.model.config.num_hidden_layers - 1
    assert np.abs(outputs(tmp_path / "smoothed.onnx", inputs) - expected).max() <= 1e-5 * np.abs(expected).max()
    assert {path.name for path in file.parent.iterdir()} == {"model.onnx"}, "no other file is left"


@pytest.mark.parametrize(("size", "share"), [(1, 2.0), (10, 1.0), (100, 0.4), (1000, 0.3)])
def test_the_larger_some_channels_are_the_less_is_lost_by_rounding(size: float, share: float, tmp_path: Path) -> None:
    """Where all are alike, a little more is."""
    rng, channels = np.random.default_rng(0), 64
    weights = [rng.normal(size=(channels, 32)).astype(np.float32) for _ in range(2)]
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Identity", ["given"], ["hidden"]),
            onnx.helper.make_node("MatMul", ["hidden", "first"], ["one"], name="one"),
            onnx.helper.make_node("MatMul", ["hidden", "second"], ["two"], name="two"),
            onnx.helper.make_node("Add", ["one", "two"], ["sum"]),
        ],
        "two maps of one input",
        [onnx.helper.make_tensor_value_info("given", onnx.TensorProto.FLOAT, ["rows", channels])],
        [onnx.helper.make_tensor_value_info("sum", onnx.TensorProto.FLOAT, ["rows", 32])],
        [onnx.numpy_helper.from_array(values, name) for values, name in zip(weights, ("first", "second"), strict=True)],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)
    sizes = np.where(np.arange(channels) < 2, size, 1.0)
    seen, new = [[{"given": (sizes * rng.normal(size=(9, channels))).astype(np.float32)}] * 3 for _ in range(2)]
    onnx.save(model, tmp_path / "plain.onnx")
    expected, smoothed = outputs(tmp_path / "plain.onnx", new), copy.deepcopy(model)
    smooth(smoothed, tmp_path / "plain.onnx", seen, threads=1)
    lost = []
    for one in (model, smoothed):
        quantize_dynamic(
            one,
            tmp_path / "int8.onnx",
            op_types_to_quantize=LINEAR,
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=True,
        )
        lost.append(float(np.square(outputs(tmp_path / "int8.onnx", new) - expected).mean()))
    assert lost[1] < share * lost[0]
