"""Smooths the inputs of linear maps in an ONNX graph, so that rounding loses less where one scale holds for a whole tensor.

A few channels of a transformer's activations are far larger than the others, which one scale leaves few steps. So each channel
is divided by a factor, and the weights that it meets are multiplied by it: the graph computes the same, up to rounding
(SmoothQuant: Xiao and others, 2023, section 4).
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from axformer.data.batches import assemble
from axformer.data.encoding import Encoded
from axformer.forms.onnx import needed, opened

TEXTS = 64
"""How many real inputs tell how large channels become."""
SHARE = 0.75
"""How much of a channel's size goes into the weights: 0.5 to 0.75 in the paper. Of MPNet-base's vectors 1 - cosine to its own
is 0.081 in the mean without, 0.063 with 0.5, 0.007 with 0.75, 0.024 with 1; of a classifier, MiniLM, 1.3 % of the answers
change without, 1.3, 0.3 and 0.9 with these. By the largest values, as in the paper, it is 0.9 % with 0.75."""
_LEAST = 1 / 8
"""Least factor, as a share of the median, so that a channel that was small on all texts is no outlier on another."""


def some_inputs(encoded: Encoded, tokenizer: Any) -> list[dict[str, np.ndarray]]:
    """At most :data:`TEXTS` of the inputs of a model, one at a time."""
    rows = len(encoded.sample_of_row)
    places = range(0, rows, max(1, rows // TEXTS))[:TEXTS]
    batches = (assemble(encoded, [place], tokenizer, "cpu").inputs for place in places)
    return [{name: values.numpy() for name, values in batch.items()} for batch in batches]


def smooth(model: Any, path: Path, inputs: Iterable[Mapping[str, np.ndarray]], threads: int) -> None:
    """Smooth the graph of a model in place.

    Args:
        path: the file that the model was read from; a file is written beside it for a moment.
        inputs: real inputs of the graph.
        threads: number of threads for each operation.
    """
    onnx, graph = needed("onnx"), model.graph
    weights = {weight.name: weight for weight in graph.initializer}
    maps: dict[str, list[Any]] = {}
    for node in graph.node:
        if (
            node.op_type in ("MatMul", "Gemm")
            and node.input[0] not in weights
            and _is_matrix(weights.get(node.input[1]))
        ):
            maps.setdefault(node.input[0], []).append(node)
    sizes = _sizes(path, list(maps), inputs, threads)
    scalings = {}
    for name, nodes in maps.items():
        found = [onnx.numpy_helper.to_array(weights[node.input[1]]) for node in nodes]
        sides = [values.T if _is_transposed(node) else values for node, values in zip(nodes, found, strict=True)]
        factors = _factors(sizes[name], np.max([np.abs(side).max(axis=1) for side in sides], axis=0))
        for node, side in zip(nodes, sides, strict=True):
            scaled, made = side * factors[:, None], f"{node.output[0]}_weights"
            graph.initializer.append(
                onnx.numpy_helper.from_array(np.ascontiguousarray(scaled.T if _is_transposed(node) else scaled), made)
            )
            node.input[0], node.input[1] = f"{name}_smooth", made
        graph.initializer.append(onnx.numpy_helper.from_array(1 / factors, f"{name}_factors"))
        first = nodes[0].output[0]
        scalings[first] = onnx.helper.make_node("Mul", [name, f"{name}_factors"], [f"{name}_smooth"])
    replace_nodes(
        graph, [one for node in graph.node for one in (scalings.get(node.output[0]), node) if one is not None]
    )


def _is_matrix(weight: Any) -> bool:
    return weight is not None and weight.data_type == needed("onnx").TensorProto.FLOAT and len(weight.dims) == 2


def _is_transposed(node: Any) -> bool:
    """Whether the weights of a node have one row for each output."""
    return any(attribute.name == "transB" and attribute.i for attribute in node.attribute)


def _factors(sizes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The factor of each channel, from its size on real inputs and the largest weight, each of shape (channels,)."""
    least = float(np.finfo(np.float32).tiny) ** 0.5
    found = np.maximum(sizes, least) ** SHARE / np.maximum(weights, least) ** (1 - SHARE)
    found = found / np.median(found)
    return np.asarray(np.maximum(found, _LEAST), dtype=np.float32)


def _sizes(
    path: Path, names: list[str], inputs: Iterable[Mapping[str, np.ndarray]], threads: int
) -> dict[str, np.ndarray]:
    """The root mean square of each channel of some results, every real input counting the same."""
    onnx = needed("onnx")
    probe = onnx.load(path, load_external_data=False)
    known = {value.name for value in probe.graph.output}
    probe.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names if name not in known
    )
    file = path.with_name(f"{path.stem}_probe.onnx")
    squares: dict[str, list[np.ndarray]] = {name: [] for name in names}
    try:
        onnx.save(probe, file)
        session = opened(file, threads)
        taken = {value.name for value in session.get_inputs()}
        for one in inputs:
            given = session.run(names, {name: values for name, values in one.items() if name in taken})
            for name, values in zip(names, given, strict=True):
                squares[name].append(np.square(values, dtype=float).reshape(-1, values.shape[-1]).mean(axis=0))
    finally:
        file.unlink(missing_ok=True)
    return {name: np.sqrt(np.mean(each, axis=0)) for name, each in squares.items()}


def replace_nodes(graph: Any, nodes: Sequence[Any]) -> None:
    """Put other nodes in the place of a graph's, and leave out the weights that none of them reads."""
    read = {name for node in nodes for name in node.input}
    kept = [weight for weight in graph.initializer if weight.name in read]
    for field, content in (("node", nodes), ("initializer", kept)):
        graph.ClearField(field)
        getattr(graph, field).extend(content)
