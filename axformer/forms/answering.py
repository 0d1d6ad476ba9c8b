"""The program that loads a form with this package in a fresh process: ``python -m axformer.forms.answering NAME``, see
:mod:`axformer.forms.fresh`. The interval of garbage collection is set before anything large is imported."""

import gc
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_ALLOCATIONS = 50_000
"""Allocations between two garbage collections. With Python's 700, collections take a seventh of the time of the imports without
making the process smaller."""


def main(name: str) -> None:
    """Compute the inputs with the form of this name, and write all output tensors and the tokenizer's texts of the inputs."""
    gc.set_threshold(_ALLOCATIONS)
    from safetensors.torch import load_file, save_file
    from transformers import AutoTokenizer

    from axformer.forms.alone import TEXTS
    from axformer.forms.kinds import kind_named
    from axformer.forms.memory import peak_bytes

    load = kind_named(name).load
    line = sys.stdin.readline()
    if not line:
        return  # the parent process has no request
    directory, device, asked, answered = json.loads(line)
    idle, start = peak_bytes(), time.perf_counter()
    model = load(Path(directory), device)
    seconds = time.perf_counter() - start
    inputs = {key: values.to(device) for key, values in load_file(asked).items()}
    found = outputs_of(model, inputs)
    figures = {"load_seconds": seconds, "idle_bytes": idle, "peak_bytes": peak_bytes()}
    tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    save_file(found | {TEXTS: texts_of(tokenizer, inputs)}, answered)
    sys.stdout.write(f"\n{json.dumps(figures)}\n")


def outputs_of(model: Any, inputs: "dict[str, Tensor]") -> "dict[str, Tensor]":
    """All output tensors of a model, on the CPU."""
    import torch

    with torch.inference_mode():
        outputs = model(**inputs)
    return {name: values.contiguous().cpu() for name, values in outputs.items() if isinstance(values, torch.Tensor)}


def texts_of(tokenizer: Any, inputs: "dict[str, Tensor]") -> "Tensor":
    """The token ids decoded by a tokenizer, as the bytes of one text."""
    import torch

    texts = tokenizer.batch_decode(inputs["input_ids"].flatten(0, -2))
    return torch.tensor(list("\n".join(texts).encode()), dtype=torch.uint8)


if __name__ == "__main__":
    main(sys.argv[1])
    gc.freeze()  # without this, a last garbage collection over all imported objects takes a second
