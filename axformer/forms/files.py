"""Writes a model with the other files of its checkpoint, so that the result is the same checkpoint, only smaller."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from axformer.architectures.embedder import plain_class
from axformer.forms.sentences import write_sentences
from axformer.intake.companions import Companions
from axformer.intake.names import CONFIG, GENERATION_CONFIG
from axformer.model.compact import MODEL_TYPE_PREFIX


def write_model(model: Any, companions: Companions, directory: Path) -> None:
    """Write a model's weights and configuration with the configuration's notes, its tokenizer, chat template and generation
    settings. The directory is created."""
    model.save_pretrained(directory)
    write_sentences(model, directory)
    for name, content in companions.files.items():
        (directory / name).write_bytes(content)
    path = directory / CONFIG
    known = json.loads(path.read_text(encoding="utf-8"))
    keys = companions.notes | known | older_keys(known)
    if not str(model.config.model_type).startswith(MODEL_TYPE_PREFIX):
        keys["architectures"] = [plain_class(type(model)).__name__]
    path.write_text(json.dumps(keys, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def older_keys(known: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of a ``config.json`` as transformers 4 has them, which takes defaults for keys of transformers 5 without a word.

    Args:
        known: the keys that transformers 5 wrote. It reads both, and they say the same; these take the place of what is left
            from an older file.
    """
    rope = known.get("rope_parameters") or {}
    older = {"torch_dtype": known["dtype"]} if "dtype" in known else {}
    if "rope_theta" in rope:
        scaling = {key: value for key, value in rope.items() if key != "rope_theta"} | {"type": rope["rope_type"]}
        older |= {"rope_theta": rope["rope_theta"], "rope_scaling": None if rope["rope_type"] == "default" else scaling}
        if rope["rope_type"] == "longrope":  # whose first length, and the factor of it, transformers 4 finds elsewhere
            short = older["original_max_position_embeddings"] = rope["original_max_position_embeddings"]
            factor = max(1.0, rope.get("factor") or known["max_position_embeddings"] / short)
            scaling.setdefault("attention_factor", math.sqrt(1 + math.log(factor) / math.log(short)))
    elif "full_attention" in rope:
        older |= {
            "global_rope_theta": rope["full_attention"]["rope_theta"],
            "local_rope_theta": rope["sliding_attention"]["rope_theta"],
            "global_attn_every_n_layers": _step(known["layer_types"]),
        }
    return older


def common_keys(known: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Keys of a ``config.json`` by the names that most families share, for programs that know no other names.

    Args:
        known: the family's keys.
        names: the family's names of keys by the common ones, ``attribute_map`` of its configuration. Two of GPT-2's stay alone,
            since text-embeddings-inference knows them and refuses a key that comes twice.
    """
    wanted = ("hidden_size", "num_hidden_layers", "max_position_embeddings")
    return {
        name: known[own]
        for name in wanted
        if (own := names.get(name, "")) in known and own not in ("n_embd", "n_layer")
    }


def _step(kinds: Sequence[str]) -> int | None:
    """Every how many layers one sees all tokens, the first one included; None if there is no such number: transformers 4 then
    fails, as it should, since it knows no other order."""
    whole = [kind == "full_attention" for kind in kinds]
    counts = range(1, len(whole) + 1)
    return next((step for step in counts if whole == [place % step == 0 for place in range(len(whole))]), None)


def write_tokenizer(companions: Companions, directory: Path) -> None:
    """Write only a tokenizer and its chat template."""
    for name, content in companions.files.items():
        if name != GENERATION_CONFIG:
            (directory / name).write_bytes(content)
