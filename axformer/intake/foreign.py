"""Recognise directories without a readable model, and say how to make one.

Users pass what their training left: an adapter, pickles, checkpoints of a run, files for another framework. One command turns
each of these into a checkpoint, and the refusal names that command.
"""

import re
from collections.abc import Collection
from fnmatch import fnmatch
from pathlib import Path

from axformer.data.formats import foreign
from axformer.errors import CheckpointError
from axformer.intake.limits import CONFIG_BYTES
from axformer.intake.names import ADAPTER_CONFIG, CONFIG, WEIGHTS, WEIGHTS_INDEX, is_checkpoint_file, is_shard
from axformer.intake.strict_json import read_json
from axformer.plan.result_files import PLAN_NAME

_HEAD = 1024
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
_PART = re.compile(r".+-\d{5}-of-(\d{5})\.safetensors", re.ASCII)
_NOT_WEIGHTS = ("adapter_*", "consolidated*", "optimizer*", "scheduler*")
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


def check_files(directory: Path) -> None:
    """Check that the files of a checkpoint are there, and not something else that a download left in their places.

    Raises:
        CheckpointError: one is a link whose target is gone, a pointer of git-lfs or a page of HTML.
    """
    for path in sorted(path for path in directory.iterdir() if is_checkpoint_file(path.name)):
        why = None
        if path.is_symlink() and not path.exists():
            why = f"is a link to {path.readlink()}, which is gone; copy the files with what they lead to (cp -rL)"
        elif path.is_file():
            with path.open("rb") as file:
                why = foreign(file.read(_HEAD), "")
        if why is not None:
            raise CheckpointError(f"checkpoint '{directory}' cannot be loaded: {path.name} {why}")


def misnamed_weights(names: Collection[str]) -> str | None:
    """The remedy for weights that nobody finds by their names, as the end of a message; None if there are none.

    Args:
        names: base names of a directory without ``model.safetensors`` and without an index of its shards.
    """
    other = sorted(name for name in names if fnmatch(name, "*.safetensors.index*.json"))
    if other:
        return f"rename {other[0]} to {WEIGHTS_INDEX}"
    found = sorted(name for name in names if is_shard(name) and not any(fnmatch(name, no) for no in _NOT_WEIGHTS))
    parts = [part for name in found if (part := _PART.fullmatch(name))]
    if parts and len(parts) < int(parts[0][1]):
        return (
            f"{len(parts)} of {int(parts[0][1])} shards and no index are there; copy the others and {WEIGHTS_INDEX} too"
        )
    if parts:
        return (
            f"its shards lack their index: copy {WEIGHTS_INDEX} too, or make one file of them with safetensors.torch: "
            "save_file({name: weight for file in glob('*-of-*.safetensors') for name, weight in load_file(file).items()}, "
            f"'{WEIGHTS}', {{'format': 'pt'}})"
        )
    return f"rename {' or '.join(found)} to {WEIGHTS}" if found else None


def _snapshot_in(directory: Path) -> Path | None:
    """The files in a directory of the hub's cache: those that its main branch stands for, or else the newest."""
    snapshots = [path for path in directory.glob("snapshots/*") if path.is_dir()]
    try:
        main = (directory / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        main = ""
    newest = max(snapshots, key=lambda path: path.stat().st_mtime, default=None)
    return next((path for path in snapshots if path.name == main), newest)


def _near(directory: Path) -> str | None:
    """The remedy for a directory in which, or below which, a model lies by a known rule; None for others."""
    if (directory / PLAN_NAME).is_file():
        return "it is the result of a run; give the checkpoint that the run began with"
    snapshot = _snapshot_in(directory)
    return f"it is a directory of the hub's cache: give {snapshot}" if snapshot else None


def remedy_in(directory: Path) -> str:
    """The remedy for a directory that is not a checkpoint, from the files in it and below it."""
    if near := _near(directory):
        return near
    below = [
        path.name for path in directory.iterdir() if any((path / name).is_file() for name in (CONFIG, ADAPTER_CONFIG))
    ]
    below = [name for name in below if name.isprintable()]
    runs = {int(found[1]): name for name in below if (found := _RUN.fullmatch(name))}
    if runs:
        return (
            f"it is the directory of a training run: give one of its checkpoints, newest {directory / runs[max(runs)]}"
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
