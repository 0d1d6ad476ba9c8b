"""Opens ``hub`` directories with Optimum, and classifiers with the cross-encoders of sentence-transformers; prints logits.

    PYTHONPATH=WHERE_OLDER_PACKAGES_LIE python loaders_optimum.py ASKED.json

It runs beside transformers 4, since Optimum's ONNX part does not import beside transformers 5, and imports nothing of ours.
ASKED.json lists {directory, task, graph, inputs, text}; each answer is {ids, logits, pair, encoder} or {failed}, and
``encoder`` is a text where that failed.
"""

import json
import sys
from pathlib import Path
from typing import Any

import optimum.onnxruntime as ort  # type: ignore[import-not-found]
import torch
from sentence_transformers import CrossEncoder
from transformers import AutoTokenizer

_SEQUENCE = ("classification", "multi_label_classification", "regression")
SECOND = "word6"
CLASSES = {
    **dict.fromkeys(_SEQUENCE, "ORTModelForSequenceClassification"),
    "token_classification": "ORTModelForTokenClassification",
    "question_answering": "ORTModelForQuestionAnswering",
    "multiple_choice": "ORTModelForMultipleChoice",
    "masked_lm": "ORTModelForMaskedLM",
    "causal_lm": "ORTModelForCausalLM",
}


def answered(directory: str, task: str, graph: str, inputs: dict[str, Any], text: str) -> dict[str, Any]:
    """What Optimum gives for the inputs; for classifiers also what both give for a pair of texts."""
    tokenizer = AutoTokenizer.from_pretrained(directory)
    more = {"use_cache": False, "use_io_binding": False} if task == "causal_lm" else {}
    loader = getattr(ort, CLASSES[task])
    model = loader.from_pretrained(directory, subfolder="onnx", file_name=graph, **more)
    found = model(**{name: torch.tensor(values) for name, values in inputs.items()})
    logits = found["logits"] if "logits" in found else found["start_logits"]
    answer = {"ids": tokenizer(text)["input_ids"], "logits": logits.flatten().tolist()}
    if task in _SEQUENCE:
        pair = model(**tokenizer(text, SECOND, return_tensors="pt", return_token_type_ids=True)).logits
        answer |= {"pair": pair.flatten().tolist(), "encoder": _encoded(directory, graph, text)}
    return answer


def _encoded(directory: str, graph: str, text: str) -> list[float] | str:
    """The logits of a cross-encoder for a pair of texts, or why there are none."""
    try:
        encoder = CrossEncoder(directory, backend="onnx", model_kwargs={"file_name": f"onnx/{graph}"})
        scores = encoder.predict([(text, SECOND)], activation_fn=torch.nn.Identity())
    except Exception as error:  # noqa: BLE001 - whatever a loader says is its verdict
        return _told(error)
    return [float(score) for score in scores.flatten()]


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def main() -> None:
    """Answer all that is asked."""
    answers = []
    for asked in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        try:
            answers.append(answered(**asked))
        except Exception as error:  # noqa: BLE001 - whatever a loader says is its verdict
            answers.append({"failed": _told(error)})
    sys.stdout.write(json.dumps(answers) + "\n")


if __name__ == "__main__":
    main()
