"""Recognise directories without a readable model, and say how to make one.

Users pass what their training left: an adapter, pickles, checkpoints of a run, files for another framework. One command turns
each of these into a checkpoint, and the refusal names that command.
"""

import re
from collections.abc import Collection
from fnmatch import fnmatch
from pathlib import Path

from axformer.intake.limits import CONFIG_BYTES
from axformer.intake.names import ADAPTER_CONFIG, CONFIG
from axformer.intake.strict_json import read_json

_SAVE = "save_pretrained, which writes config.json and model.safetensors"
MERGE = "merge it (merge_and_unload) and save"
"""What to do about an adapter."""
_KINDS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        (ADAPTER_CONFIG, "adapter_model.*", "pytorch_adapter.bin", "pytorch_model_adapters.bin"),
        f"it holds an adapter (LoRA or the like) and not the model around it: {MERGE}: "
        "AutoPeftModelForSequenceClassification.from_pretrained(DIR).merge_and_unload().save_pretrained(NEW), or the class of "
        "your model, and the tokenizer beside it",
    ),
    (
        ("zero_to_fp32.py", "*_zero_pp_rank_*"),
        "it holds shards of DeepSpeed: make one model of them with python zero_to_fp32.py DIR NEW --safe_serialization",
    ),
    (
        ("*.distcp", ".metadata"),
        "it holds shards of FSDP: make one model of them with accelerate merge-weights DIR NEW, and put config.json and "
        "tokenizer beside it",
    ),
    (
        ("*.gguf", "*.ggml", "ggml-*"),
        "GGUF weights are not read; give the model that they were converted from",
    ),
    (
        ("*.h5", "*.ckpt.index", "*.ckpt.meta", "saved_model.pb"),
        "TensorFlow weights are not read; save the model again with transformers 4, as PyTorch's: "
        "AutoModelForSequenceClassification.from_pretrained(DIR, from_tf=True).save_pretrained(DIR)",
    ),
    (
        ("*.msgpack",),
        "Flax weights are not read; save the model again with transformers 4, as PyTorch's: "
        "AutoModelForSequenceClassification.from_pretrained(DIR, from_flax=True).save_pretrained(DIR)",
    ),
    (
        ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl"),
        "pickled weights are not read, save the model again with save_pretrained, which writes model.safetensors: "
        "AutoModelForSequenceClassification.from_pretrained(DIR).save_pretrained(DIR), or the class of your model",
    ),
    (("*.onnx",), "ONNX models are not read; give the model that was exported"),
)
"""File name patterns, the most specific first, and the message for a directory with such a file."""
_RUN = re.compile(r"checkpoint-(\d{1,18})", re.ASCII)
_NEVER_MERGED = {"PREFIX_TUNING", "PROMPT_TUNING", "P_TUNING", "MULTITASK_PROMPT_TUNING", "ADAPTION_PROMPT", "CPT"}
"""Adapters that add tokens to the input or modules to the model, so they cannot be merged into its weights."""


def adapter_beside(names: Collection[str]) -> str | None:
    """What to do about an adapter that lies beside whole weights, as the end of a message; None if there is none.

    The weights may have the adapter in them or not, which no file says, and transformers would load neither of both: with PEFT
    installed it reads the model that the adapter names.

    Args:
        names: base names of a checkpoint's files.
    """
    found = sorted(name for name in names if name == ADAPTER_CONFIG or fnmatch(name, "adapter_model.*"))
    if not found:
        return None
    return (
        f"an adapter lies beside its weights ({', '.join(found)}): {MERGE}; if it is merged into these weights already, "
        "remove its files"
    )


def remedy_for(names: Collection[str]) -> str:
    """The remedy for files that are not a checkpoint, from their names, as the end of a message.

    Args:
        names: base names of the files.
    """
    for patterns, remedy in _KINDS:
        if any(fnmatch(name, pattern) for name in names for pattern in patterns):
            return remedy
    return f"save the model again with {_SAVE}"


def remedy_in(directory: Path) -> str:
    """The remedy for a directory that is not a checkpoint, from the files in it and below it."""
    below = [
        path.name for path in directory.iterdir() if any((path / name).is_file() for name in (CONFIG, ADAPTER_CONFIG))
    ]
    below = [name for name in below if name.isprintable()]
    runs = {int(found[1]): name for name in below if (found := _RUN.fullmatch(name))}
    if runs:
        return (
            f"it is the directory of a training run: give one of its checkpoints, newest {directory / runs[max(runs)]}"
        )
    if (directory / "modules.json").is_file():
        return (
            "it is a sentence-transformers directory, whose encoder has no head that could be measured: fine-tune "
            f"AutoModelForSequenceClassification.from_pretrained('{directory / min(below, default='')}')"
        )
    if below:
        return f"a model lies in a directory below: give {directory / min(below)}"
    if _is_never_merged(directory / ADAPTER_CONFIG):
        return "it holds an adapter of a kind that no weight can take in; fine-tune the model whole, or with LoRA"
    return remedy_for([path.name for path in directory.iterdir()])


def _is_never_merged(path: Path) -> bool:
    try:
        config = read_json(path, CONFIG_BYTES)
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and str(config.get("peft_type")) in _NEVER_MERGED
