"""Loads and runs an ONNX form with what its users have: ONNX Runtime, tokenizers and NumPy. It is run by its path, so that
neither this package nor PyTorch is imported.

``python -I onnx_alone.py GRAPH`` reads a JSON list of ``DIRECTORY DEVICE INPUTS OUTPUTS`` and prints its measurements as one
line of JSON (:mod:`axformer.forms.fresh`).
"""

import json
import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

_HERE = Path(__file__)


def main(graph: str) -> None:
    """Answer a request with the graph of this name."""
    memory = runpy.run_path(str(_HERE.with_name("memory.py")))["peak_bytes"]
    line = sys.stdin.readline()
    if not line:
        return  # the parent process has no request
    directory, _, asked, answered = json.loads(line)
    idle, start = memory(), time.perf_counter()
    session = onnxruntime.InferenceSession(str(Path(directory, graph)), _options(), providers=["CPUExecutionProvider"])
    seconds = time.perf_counter() - start
    inputs, names = load_file(asked), [value.name for value in session.get_outputs()]
    outputs = session.run(names, {value.name: inputs[value.name] for value in session.get_inputs()})
    figures = {"load_seconds": seconds, "idle_bytes": idle, "peak_bytes": memory()}
    texts = _decoded(directory, inputs["input_ids"].reshape(-1, inputs["input_ids"].shape[-1]).tolist())
    found = dict(zip(names, map(np.ascontiguousarray, outputs), strict=True))
    save_file({**found, "texts of the tokenizer": np.frombuffer("\n".join(texts).encode(), np.uint8)}, answered)
    sys.stdout.write(f"\n{json.dumps(figures)}\n")


def _options() -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", "0").partition(",")[0])
    options.log_severity_level = 3  # its warnings are meant for its developers
    return options


def _decoded(directory: str, rows: list[list[int]]) -> list[str]:
    """The texts of token ids; a tokenizer without a ``tokenizer.json`` needs transformers."""
    file = Path(directory, "tokenizer.json")
    if file.is_file():
        return Tokenizer.from_file(str(file)).decode_batch(rows, skip_special_tokens=False)
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    return tokenizer.batch_decode(rows, clean_up_tokenization_spaces=False)


if __name__ == "__main__":
    main(sys.argv[1])
