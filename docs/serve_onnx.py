"""Classify texts, or turn them into vectors, with an ONNX form. It needs onnxruntime, tokenizers and numpy, and nothing else.

python serve_onnx.py smaller/hub TEXT...

It takes the graph in 8 bits where there is one.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer


class Model:
    """A classifier of texts, or an embedder."""

    def __init__(self, directory: Path) -> None:
        facts = json.loads((directory / "config.json").read_text(encoding="utf-8"))["axformer"]
        self.inputs, self.output = facts["inputs"], facts["outputs"][0]
        self.is_embedder = self.output == "sentence_embedding"
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

    def outputs(self, texts: list[str]) -> np.ndarray:
        """Logits, shape (texts, labels), or an embedder's vectors, shape (texts, dimensions)."""
        encodings = self.tokenizer.encode_batch(texts)
        features = {
            "input_ids": [encoding.ids for encoding in encodings],
            "attention_mask": [encoding.attention_mask for encoding in encodings],
            "token_type_ids": [encoding.type_ids for encoding in encodings],
        }
        inputs = {name: np.array(features[name], dtype=np.int64) for name in self.inputs}
        return self.session.run([self.output], inputs)[0]


if __name__ == "__main__":
    model = Model(Path(sys.argv[1]))
    for row in model.outputs(sys.argv[2:]):
        label = {} if model.is_embedder else {"label": model.labels[str(row.argmax())]}
        print(json.dumps(label | {"embedding" if model.is_embedder else "logits": row.tolist()}))  # noqa: T201
