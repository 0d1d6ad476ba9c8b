"""Loads and runs a model with transformers alone. It is run by its path, so that this package is not on the import path.

``python -I alone.py AUTO_CLASS`` reads a JSON list of ``MODEL DEVICE INPUTS OUTPUTS`` and prints its measurements as one line
of JSON.
"""

import gc
import json
import runpy
import sys
import time
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

TEXTS = "texts of the tokenizer"


def main(auto_class: str) -> None:
    """Compute the inputs, and write all output tensors and the tokenizer's texts of the inputs."""
    line = sys.stdin.readline()
    if not line:
        return  # the parent process has no request
    directory, device, inputs, outputs = json.loads(line)
    peak_bytes = runpy.run_path(str(Path(__file__).with_name("memory.py")))["peak_bytes"]
    auto = getattr(transformers, auto_class)
    auto._model_mapping[
        type(transformers.AutoConfig.from_pretrained(directory, local_files_only=True))
    ]  # imports its class
    idle, start = peak_bytes(), time.perf_counter()
    model = auto.from_pretrained(directory, local_files_only=True).to(device).eval()
    seconds = time.perf_counter() - start
    asked = load_file(inputs, device=device)
    with torch.inference_mode():
        found = model(**asked)
    figures = {"load_seconds": seconds, "idle_bytes": idle, "peak_bytes": peak_bytes()}
    answer = {name: values.contiguous().cpu() for name, values in found.items() if isinstance(values, torch.Tensor)}
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory, local_files_only=True)
    texts = tokenizer.batch_decode(asked["input_ids"].flatten(0, -2))
    answer[TEXTS] = torch.tensor(list("\n".join(texts).encode()), dtype=torch.uint8)
    if any(name.partition(".")[0] == "axformer" for name in sys.modules):
        raise SystemExit("axformer was imported")
    save_file(answer, outputs)
    sys.stdout.write(f"\n{json.dumps(figures)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
    gc.freeze()  # without this, a last garbage collection over all imported objects takes a second
