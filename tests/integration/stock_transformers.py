"""Loads a model as its users do who have transformers alone, and computes: run by its path, so that this package is not there.

``python -I stock.py AUTO_CLASS MODEL DEVICE INPUTS OUTPUTS``
"""

import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

TEXTS = "texts of the tokenizer"


def main(auto_class: str, directory: str, device: str, inputs: str, outputs: str) -> None:
    """Answer the inputs with all tensors that the model gives back, and with what the tokenizer reads in them."""
    model = getattr(transformers, auto_class).from_pretrained(directory, local_files_only=True).to(device).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory, local_files_only=True)
    asked = load_file(inputs, device=device)
    with torch.inference_mode():
        found = model(**asked)
    answer = {name: values.contiguous().cpu() for name, values in found.items() if isinstance(values, torch.Tensor)}
    texts = tokenizer.batch_decode(asked["input_ids"].flatten(0, -2))
    answer[TEXTS] = torch.tensor(list("\n".join(texts).encode()), dtype=torch.uint8)
    if any(name.partition(".")[0] == "axformer" for name in sys.modules):
        raise SystemExit("axformer was imported")
    save_file(answer, outputs)


if __name__ == "__main__":
    main(*sys.argv[1:])
