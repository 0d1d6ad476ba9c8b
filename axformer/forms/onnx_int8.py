"""The ONNX form with 8-bit weights: smaller by three quarters, and faster on processors that multiply 8-bit integers.

Weights of linear maps are rounded with one scale for each output, activations at run time with one scale for each tensor. ONNX
Runtime has no faster arithmetic with one scale for each token, so large channels are smoothed before
(:mod:`axformer.forms.smoothing`), and the answer to a text depends slightly on the other texts in the batch. Embeddings are
rounded with one scale for each token of the vocabulary. Everything else stays in float32.
"""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from axformer.errors import ArtifactError, FormError, first_line
from axformer.forms.facts import read_facts
from axformer.forms.onnx import GRAPH_FILE, WEIGHTS_FILE, needed
from axformer.forms.smoothing import replace_nodes, smooth

QUANTIZED_FILE = "onnx/model_quantized.onnx"
LARGEST = 127
"""The largest magnitude of symmetric 8-bit integers."""
LINEAR = ["MatMul", "Gemm"]
MATRIX = 2
"""Number of dimensions of a linear map."""


def write_onnx_int8(source: Path, directory: Path, inputs: Iterable[Mapping[str, np.ndarray]], threads: int) -> None:
    """Write ``onnx/model_quantized.onnx`` with 8-bit weights, and what is beside the graphs.

    Args:
        source: the directory written by :func:`axformer.forms.onnx.write_onnx`.
        directory: the directory of the files, which may be the same; it is created.
        inputs: some real inputs of the graph, by which activations are smoothed.
        threads: number of threads for each operation.

    Raises:
        ArtifactError: the source is missing or damaged.
        FormError: the graph cannot be quantized, or a package is not installed.
    """
    quantization = needed("onnxruntime.quantization")
    read_facts(source)
    model = read_graph(source / GRAPH_FILE)
    smooth(model, source / GRAPH_FILE, inputs, threads)
    _round_tables(model.graph)
    model.graph.ClearField("value_info")  # shapes of weights, which the quantizer transposes
    quantization.quant_utils.add_pre_process_metadata(model)  # the exporter has folded constants already
    (directory / QUANTIZED_FILE).parent.mkdir(parents=True, exist_ok=True)
    try:
        quantization.quantize_dynamic(
            model,
            directory / QUANTIZED_FILE,
            op_types_to_quantize=LINEAR,
            nodes_to_exclude=_by_head(model.graph),
            weight_type=quantization.QuantType.QInt8,
            per_channel=True,
            reduce_range=True,  # 7 bits: sums of 8-bit products overflow on processors without VNNI
            use_external_data_format=(source / WEIGHTS_FILE).exists(),
        )
    except Exception as error:  # from the quantizer: all concern this model
        raise FormError(f"the ONNX graph cannot be quantized: {first_line(error)}") from error
    if directory != source:
        copy_beside(source, directory)


def copy_beside(source: Path, directory: Path) -> None:
    """Copy what is beside the graphs."""
    shutil.copytree(source, directory, ignore=shutil.ignore_patterns("onnx"), dirs_exist_ok=True)


def read_graph(path: Path) -> Any:
    """Read a graph with its weights.

    Raises:
        ArtifactError: it is missing or damaged.
    """
    onnx = needed("onnx")
    try:
        return onnx.load(path)
    except Exception as error:  # noqa: BLE001 - from the disk, protobuf or ONNX: all concern this file
        raise ArtifactError(f"'{path}' is not an ONNX graph that loads: {first_line(error)}") from None


def _by_head(graph: Any) -> list[str]:
    """Names of products with one matrix for each head, for which ONNX Runtime has no scales per output. They are small:
    attention with one query per row (:func:`axformer.model.one_position.context_at`)."""
    stacked = {weight.name for weight in graph.initializer if len(weight.dims) > MATRIX}
    return [node.name for node in graph.node if node.op_type in LINEAR and stacked.intersection(node.input)]


def _round_tables(graph: Any) -> None:
    """Replace every lookup table of float32 rows (embeddings) by a table of 8-bit rows with a scale for each row."""
    onnx = needed("onnx")
    weights = {weight.name: weight for weight in graph.initializer}
    nodes, added = [], {}
    for node in graph.node:
        table = weights.get(node.input[0]) if node.op_type == "Gather" else None
        if table is None or table.data_type != onnx.TensorProto.FLOAT or len(table.dims) != 2 or _axis(node) != 0:
            nodes.append(node)
            continue
        values = onnx.numpy_helper.to_array(table)
        scales = np.maximum(np.abs(values).max(axis=1, keepdims=True), np.finfo(np.float32).tiny * LARGEST) / LARGEST
        rounded, scale = f"{table.name}_int8", f"{table.name}_scale"
        added[rounded] = np.rint(values / scales).astype(np.int8)
        added[scale] = scales
        nodes += _lookup(node, rounded, scale)
    replace_nodes(graph, nodes)
    graph.initializer.extend(onnx.numpy_helper.from_array(values, name) for name, values in added.items())


def _axis(node: Any) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)


def _lookup(node: Any, rounded: str, scale: str) -> list[Any]:
    """The nodes that replace the lookup of rows in a float32 table."""
    make, to_float = needed("onnx").helper.make_node, needed("onnx").TensorProto.FLOAT
    indices, (output,) = node.input[1], node.output
    return [
        make("Gather", [rounded, indices], [f"{output}_int8"]),
        make("Cast", [f"{output}_int8"], [f"{output}_float"], to=to_float),
        make("Gather", [scale, indices], [f"{output}_scale"]),
        make("Mul", [f"{output}_float", f"{output}_scale"], [output]),
    ]
