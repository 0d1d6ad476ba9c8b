"""Write what makes a directory one of sentence-transformers, beside the weights of an embedder.

The files are written anew from what intake read, in words that sentence-transformers has known since its version 2. The
transformer is loaded by transformers' Auto classes, so a compact form needs ``import axformer.auto`` before, as everywhere.
"""

import inspect
import json
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from axformer.architectures.embedder import DENSE, DENSE_WEIGHTS, Embedding, behind_of, spec_of
from axformer.architectures.registry import architecture_of
from axformer.intake.names import MODULES, SENTENCE_CONFIG, SENTENCE_LIMITS
from axformer.intake.sentences import MODES
from axformer.model.compact import MODEL_TYPE_PREFIX

_DENSE_KEYS = {"in_features", "out_features", "bias", "activation_function"}


def write_sentences(model: Any, directory: Path) -> None:
    """Write the modules of an embedder; nothing for another model.

    Args:
        directory: of the form.
    """
    config = model.config
    spec = spec_of(config)
    if spec is None:
        return
    kinds = ["Transformer", "Pooling", *["Dense"] * len(spec.dense), *["Normalize"] * spec.normalize]
    modules = [
        {
            "idx": index,
            "name": str(index),
            "path": f"{index}_{kind}" if index else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for index, kind in enumerate(kinds)
    ]
    for module in modules[1:]:
        (directory / str(module["path"])).mkdir(exist_ok=True)
    _write(directory / MODULES, modules)
    _write(directory / SENTENCE_LIMITS, _limits(config, spec))
    _write(directory / SENTENCE_CONFIG, _settings(spec))
    _write(directory / "1_Pooling" / "config.json", _pooling(config, spec))
    for place, (one, layer) in enumerate(zip(spec.dense, behind_of(model), strict=True), start=2):
        _write(directory / DENSE.format(place) / "config.json", one.model_dump(include=_DENSE_KEYS))
        weights = {name: values.contiguous() for name, values in layer.state_dict().items()}
        save_file(weights, directory / DENSE.format(place) / DENSE_WEIGHTS, metadata={"format": "pt"})
    if spec.normalize:
        _write(directory / str(modules[-1]["path"]) / "config.json", {})


def _limits(config: Any, spec: Embedding) -> dict[str, Any]:
    """The longest text, and that no pooler is built, whose output nobody reads."""
    base = architecture_of(config.model_type.removeprefix(MODEL_TYPE_PREFIX)).base_class
    has_pooler = "add_pooling_layer" in inspect.signature(base.__init__).parameters
    without = {"model_args": {"add_pooling_layer": False}} if has_pooler else {}
    return {"max_seq_length": spec.max_length, "do_lower_case": False, **without}


def _pooling(config: Any, spec: Embedding) -> dict[str, Any]:
    """The pooling by keys of all versions, which have an order of their own; in another order by those of version 6."""
    used = {key: mode in spec.pooling for key, mode in MODES.items()}
    if [mode for mode in MODES.values() if mode in spec.pooling] == list(spec.pooling):
        return {"word_embedding_dimension": config.hidden_size, **used, "include_prompt": True}
    return {"embedding_dimension": config.hidden_size, "pooling_mode": list(spec.pooling), "include_prompt": True}


def _settings(spec: Embedding) -> dict[str, Any]:
    given = {
        "prompts": spec.prompts,
        "default_prompt_name": spec.default_prompt,
        "similarity_fn_name": spec.similarity or "cosine",
    }
    return given if spec.dimensions is None else {**given, "truncate_dim": spec.dimensions}


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
