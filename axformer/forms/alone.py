"""Loads and runs a model with transformers alone. It is run by its path, so that this package is not on the import path.

``python -I alone.py AUTO_CLASS`` reads a JSON list of ``MODEL DEVICE INPUTS OUTPUTS`` and prints its measurements as one line
of JSON.
"""

import gc
import json
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

TEXTS = "texts of the tokenizer"


def main(auto_class: str) -> None:
    """Answer a request with the model of an Auto class."""
    auto = getattr(transformers, auto_class)
    peak_bytes = runpy.run_path(str(Path(__file__).with_name("memory.py")))["peak_bytes"]

    def prepare(directory: str) -> None:
        config = transformers.AutoConfig.from_pretrained(directory, local_files_only=True)
        auto._model_mapping[type(config)]  # imports its class

    def load(directory: str, device: str) -> Any:
        return auto.from_pretrained(directory, local_files_only=True).to(device).eval()

    answer(load, peak_bytes, prepare)
    if any(name.partition(".")[0] == "axformer" for name in sys.modules):
        raise SystemExit("axformer was imported")


def answer(
    load: Callable[[str, str], Any], peak_bytes: Callable[[], int], prepare: Callable[[str], None] | None = None
) -> None:
    """Read the request, compute its inputs, and write all output tensors and the tokenizer's texts of the inputs.

    Args:
        load: loads the model from a directory onto a device.
        peak_bytes: tells the peak memory of this process.
        prepare: what happens before time and memory are measured.
    """
    line = sys.stdin.readline()
    if not line:
        return  # the parent process has no request
    directory, device, asked, answered = json.loads(line)
    if prepare is not None:
        prepare(directory)
    idle, start = peak_bytes(), time.perf_counter()
    model = load(directory, device)
    seconds = time.perf_counter() - start
    inputs = load_file(asked, device=device)
    found = outputs_of(model, inputs)
    figures = {"load_seconds": seconds, "idle_bytes": idle, "peak_bytes": peak_bytes()}
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory, local_files_only=True)
    save_file(found | {TEXTS: texts_of(tokenizer, inputs)}, answered)
    sys.stdout.write(f"\n{json.dumps(figures)}\n")


def outputs_of(model: Any, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """All output tensors of a model, on the CPU."""
    with torch.inference_mode():
        outputs = model(**inputs)
    return {name: values.contiguous().cpu() for name, values in outputs.items() if isinstance(values, Tensor)}


def texts_of(tokenizer: Any, inputs: dict[str, Tensor]) -> Tensor:
    """The token ids decoded by a tokenizer, as the bytes of one text."""
    texts = tokenizer.batch_decode(inputs["input_ids"].flatten(0, -2), clean_up_tokenization_spaces=False)
    return torch.tensor(list("\n".join(texts).encode()), dtype=torch.uint8)


if __name__ == "__main__":
    main(sys.argv[1])
    gc.freeze()  # without this, a last garbage collection over all imported objects takes a second
