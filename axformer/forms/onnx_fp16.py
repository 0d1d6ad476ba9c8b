"""The ONNX form in half precision, for GPUs and browsers: half of the bytes, the same inputs, outputs in float32.

What is computed of positions (angles, whole numbers) and the mean squares of norms stay in float32, since half precision has
11 binary digits and ends at 65,504.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from axformer.errors import FormError, first_line
from axformer.forms.facts import read_facts
from axformer.forms.onnx import GRAPH_FILE, WEIGHTS_FILE, needed
from axformer.forms.onnx_int8 import copy_beside, read_graph

HALF_FILE = "onnx/model_fp16.onnx"
LARGEST = float(np.finfo(np.float16).max)
_ROOT = "Sqrt"
_UNDER_ROOT = {_ROOT: ("Add",), "Add": ("ReduceMean",), "ReduceMean": ("Pow",), "Pow": ()}
"""The operations whose results a norm's root is taken of, one after the other."""


def write_onnx_fp16(source: Path, directory: Path) -> None:
    """Write ``onnx/model_fp16.onnx``, and what is beside the graphs.

    Args:
        source: the directory written by :func:`axformer.forms.onnx.write_onnx`.
        directory: the directory of the files, which may be the same; it is created.

    Raises:
        ArtifactError: the source is missing or damaged.
        FormError: a weight is too large for half precision, the graph cannot be converted, or a package is not installed.
    """
    onnx, float16 = needed("onnx"), needed("onnxruntime.transformers.float16")
    read_facts(source)
    model = read_graph(source / GRAPH_FILE)
    _check_weights(model.graph)
    kept, path = _kept(model.graph), directory / HALF_FILE
    _forget_types_within(model.graph, kept)
    is_large = (source / WEIGHTS_FILE).exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        half = float16.convert_float_to_float16(
            model, keep_io_types=True, disable_shape_infer=True, node_block_list=sorted(kept)
        )
        _put_in_order(half.graph)
        onnx.save(half, path, save_as_external_data=is_large, location=f"{path.name}.data")
    except Exception as error:  # from the converter: all concern this model
        raise FormError(f"the ONNX graph cannot be written in half precision: {first_line(error)}") from error
    if directory != source:
        copy_beside(source, directory)


def _put_in_order(graph: Any) -> None:
    """Put every operation behind those whose results it reads, and leave out repeated ones: the converter adds a cast for each
    reader, at the end."""
    nodes = list({tuple(node.output): node for node in graph.node}.values())
    graph.ClearField("node")
    graph.node.extend(nodes)
    needed("onnxruntime.transformers.onnx_model").OnnxModel.graph_topological_sort(graph)


def each_result_rounded(path: Path) -> bytes:
    """A graph in half precision that, run without optimisations, rounds the result of each operation, as a GPU does.

    On a CPU ONNX Runtime computes in float32 from one operation to the next, where no overflow would show.
    """
    onnx = needed("onnx")
    model = onnx.load(path, load_external_data=False)
    nodes = []
    for node in model.graph.node:
        names = [name for name in node.output if name]
        node.output[:] = [name and f"{name}_unrounded" for name in node.output]
        nodes += [node, *(onnx.helper.make_node("Identity", [f"{name}_unrounded"], [name]) for name in names)]
    model.graph.ClearField("node")
    model.graph.node.extend(nodes)
    content: bytes = model.SerializeToString()
    return content


def _check_weights(graph: Any) -> None:
    """Refuse weights beyond half precision. Single numbers may be: what masks add is cut to the smallest one."""
    onnx = needed("onnx")
    for weight in graph.initializer:
        values = onnx.numpy_helper.to_array(weight)
        largest = np.abs(values).max() if weight.data_type == onnx.TensorProto.FLOAT and values.size > 1 else 0.0
        if largest > LARGEST:
            raise FormError(
                f"there is no form of this model in half precision, which ends at {LARGEST:,.0f}: the weight {weight.name} has "
                f"a number of size {largest:,.0f}; take the form onnx"
            )


def _kept(graph: Any) -> set[str]:
    """The names of the operations that stay in float32."""
    of = needed("onnx").TensorProto
    floats = {value.name for value in graph.value_info if value.type.tensor_type.elem_type == of.FLOAT}
    makers = {name: node for node in graph.node for name in node.output if name in floats}
    whole = [
        node
        for node in graph.node
        if node.op_type == "Cast" and any(one.name == "to" and one.i in (of.INT32, of.INT64) for one in node.attribute)
    ]
    of_positions = [*(node for node in graph.node if node.op_type in ("Cos", "Sin")), *whole]
    roots = [node for node in graph.node if node.op_type == _ROOT]
    return _before(of_positions, makers) | _before(roots, makers, _UNDER_ROOT)


def _before(
    nodes: Iterable[Any], makers: Mapping[str, Any], chain: Mapping[str, Sequence[str]] | None = None
) -> set[str]:
    """The names of operations and of those that their inputs come from.

    Args:
        makers: the operations by the names of their results.
        chain: the kinds of operations that are followed from each kind; None for all.
    """
    found, waiting = set(), list(nodes)
    while waiting:
        node = waiting.pop()
        if node.name not in found:
            found.add(node.name)
            before = [makers[name] for name in node.input if name in makers]
            waiting += [one for one in before if chain is None or one.op_type in chain[node.op_type]]
    return found


def _forget_types_within(graph: Any, kept: set[str]) -> None:
    """Forget the types of weights and of results that only operations in float32 read; the converter rounds what it knows."""
    outside = {name for node in graph.node if node.name not in kept for name in node.input}
    outside |= {value.name for value in graph.output}
    within = {name for node in graph.node if node.name in kept for name in node.output} - outside
    within |= {weight.name for weight in graph.initializer}
    types = [value for value in graph.value_info if value.name not in within]
    graph.ClearField("value_info")
    graph.value_info.extend(types)
