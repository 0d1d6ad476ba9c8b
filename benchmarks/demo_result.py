"""Whether a downloaded result is what the service said: it loads both ways, and measures as its report claims."""

import json
import math
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, pipeline

import axformer
import axformer.auto  # lets transformers load the compact model
from axformer.errors import AxFormerError
from benchmarks.measure import measure
from benchmarks.rows import Row
from benchmarks.tasks.registry import task_named

# The report was measured in other batches, and rounding differs a little with the batch.
_SAME_LOSS = 1e-4
# Held-out figures, and whether less of them is better.
_JUDGED = {"loss": True, "accuracy": False, "matthews_correlation": False}


class ResultError(AxFormerError):
    """The result is not what the service said."""


def read_report(result: Path) -> dict[str, Any]:
    """The content of ``report.json``."""
    report: dict[str, Any] = json.loads((result / "report.json").read_text(encoding="utf-8"))
    return report


def check_loss(result: Path, validation: list[Row], max_length: int) -> float:
    """Measure the downloaded model here with transformers alone, and give its loss.

    Raises:
        ResultError: the report says something else.
    """
    found = measure(result / "model", task_named("classification"), validation, max_length)["loss"]
    told = read_report(result)["pruned"]["validation"]["loss"]
    if not math.isclose(found, told, rel_tol=_SAME_LOSS):
        raise ResultError(f"the downloaded model has the validation loss {found}, its report says {told}")
    return found


def check_loading(result: Path, sentence: str) -> dict[str, Any]:
    """Classify a sentence by ``axformer.load`` and by ``transformers.pipeline``, and give the pipeline's answer.

    Raises:
        ResultError: they disagree.
    """
    home = result / "model"
    model = axformer.load(result)
    logits = model(**AutoTokenizer.from_pretrained(home)(sentence, return_tensors="pt")).logits[0]
    label = model.config.id2label[int(logits.argmax())]
    answer: dict[str, Any] = pipeline("text-classification", model=str(home))(sentence)[0]
    if answer["label"] != label:
        raise ResultError(f"axformer.load calls '{sentence}' {label}, transformers.pipeline {answer['label']}")
    return answer


def held_out_verdict(report: dict[str, Any]) -> str:
    """In one sentence, whether the held-out figures got better or worse."""
    before, after = report["base"]["test"], report["pruned"]["test"]
    words: dict[str, list[str]] = {"better": [], "worse": [], "the same": []}
    for name, less_is_better in _JUDGED.items():
        gain = (before[name] - after[name]) * (1 if less_is_better else -1)
        words["better" if gain > 0 else "worse" if gain < 0 else "the same"].append(name.replace("_", " "))
    found = "; ".join(f"{', '.join(names)} got {how}" for how, names in words.items() if names and how != "the same")
    same = f"{', '.join(words['the same'])} did not change" if words["the same"] else ""
    return f"On held-out data: {'; '.join(part for part in (found, same) if part)}."
