"""Classify texts with an ONNX form. It needs onnxruntime, tokenizers and numpy, and nothing else.

python serve_onnx.py smaller/hub TEXT...

It takes the graph in 8 bits where there is one.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer


class Classifier:
    """A model for texts with one label each."""

    def __init__(self, directory: Path) -> None:
        facts = json.loads((directory / "config.json").read_text(encoding="utf-8"))["axformer"]
        self.inputs = facts["inputs"]
        self.labels = facts["id2label"]
        self.tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self.tokenizer.enable_padding(
            direction=facts["padding_side"],
            pad_id=facts["pad_token_id"],
            pad_type_id=facts["pad_token_type_id"],
            pad_token=facts["pad_token"],
        )
        if facts["max_length"] is None:
            self.tokenizer.no_truncation()
        else:
            self.tokenizer.enable_truncation(facts["max_length"])
        graphs = (directory / "onnx" / name for name in ("model_quantized.onnx", "model.onnx"))
        graph = next(path for path in graphs if path.exists())
        self.session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])

    def logits(self, texts: list[str]) -> np.ndarray:
        """Shape (texts, labels)."""
        encodings = self.tokenizer.encode_batch(texts)
        features = {
            "input_ids": [encoding.ids for encoding in encodings],
            "attention_mask": [encoding.attention_mask for encoding in encodings],
            "token_type_ids": [encoding.type_ids for encoding in encodings],
        }
        inputs = {name: np.array(features[name], dtype=np.int64) for name in self.inputs}
        return self.session.run(["logits"], inputs)[0]


if __name__ == "__main__":
    classifier = Classifier(Path(sys.argv[1]))
    for row in classifier.logits(sys.argv[2:]):
        print(json.dumps({"label": classifier.labels[str(row.argmax())], "logits": row.tolist()}))  # noqa: T201
