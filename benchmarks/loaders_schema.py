"""What programs that do not run here read of the directory ``hub``, as their sources have it.

text-embeddings-inference 0d124dc (July 2026): ``ModelConfig`` in ``router/src/lib.rs``, ``Config`` and ``TokenizerConfig`` in
``backends/ort/src/lib.rs``. Triton's ONNX Runtime backend 00fd3e8 (June 2026): ``AutoCompleteMaxBatch`` and
``CompareDimsSupported``.
"""

import json
from pathlib import Path

import onnx

from axformer.forms.kinds import KINDS, ONNX, ONNX_INT8

SEQUENCE = ("classification", "multi_label_classification", "regression")
TEI_NEEDS: dict[tuple[str, ...], type] = {
    ("architectures",): list,
    ("model_type",): str,
    ("id2label",): dict,
    ("label2id",): dict,
    ("max_position_embeddings", "max_trained_positions"): int,
    ("hidden_size", "n_embd"): int,
    ("num_hidden_layers", "n_layer"): int,
}
"""Keys of ``config.json`` with their type; one of the names."""
TEI_TAKES = (("num_key_value_heads", "n_head"), ("pad_token_id",), ("eos_token_id",))
"""Keys that are read as whole numbers where they are."""
FED = {"input_ids", "attention_mask", "token_type_ids"}


class NoTaskError(Exception):
    """A program that has no such task."""


def by_tei(directory: Path, task: str) -> None:
    """text-embeddings-inference starts, and finds what it feeds and reads."""
    if task not in SEQUENCE:
        raise NoTaskError(task)
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    for names, kind in TEI_NEEDS.items():
        found = [name for name in names if name in config]
        assert found, f"config.json has no {names[0]}"
        assert len(found) == 1, f"{found[0]} comes twice"
        assert isinstance(config[found[0]], kind), f"{found[0]} is {config[found[0]]!r}"
    for names in TEI_TAKES:
        values = [config[name] for name in names if name in config]
        assert len(values) <= 1, f"{names[0]} comes twice"
        assert all(value is None or (isinstance(value, int) and value >= 0) for value in values), (
            f"{names[0]} is {values}"
        )
    assert all(isinstance(place, int) for place in config["label2id"].values()), config["label2id"]
    assert config["architectures"][0].endswith("Classification"), config["architectures"]
    assert (directory / "tokenizer.json").is_file(), "no tokenizer.json"
    settings = json.loads((directory / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert settings.get("padding_side", "right") in ("left", "right"), settings
    graph = onnx.load(directory / KINDS[ONNX].graph, load_external_data=False).graph
    assert {one.name for one in graph.input} <= FED, [one.name for one in graph.input]
    assert [one.name for one in graph.output] == ["logits"], [one.name for one in graph.output]


def by_triton(directory: Path, task: str) -> None:
    """Both graphs can be batched, and have types that Triton knows."""
    for kind in (ONNX, ONNX_INT8):
        graph = onnx.load(directory / KINDS[kind].graph, load_external_data=False).graph
        for value in (*graph.input, *graph.output):
            tensor = value.type.tensor_type
            assert tensor.elem_type in (onnx.TensorProto.INT64, onnx.TensorProto.FLOAT), f"{value.name}: type {tensor}"
            assert tensor.shape.dim, f"{value.name} of {task} has no dimension"
            assert tensor.shape.dim[0].dim_param, f"{value.name} of {task}: the first dimension is fixed"
