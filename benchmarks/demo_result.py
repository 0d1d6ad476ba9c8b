"""What the demo makes of downloaded results: whether they are what the service said, one picture, and which file to deploy."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

import axformer
import axformer.auto  # lets transformers load the compact model
from axformer.drawing.forms import FormMark, FormSeries, forms_chart
from axformer.errors import AxFormerError
from axformer.reporting.deploy_table import deployables
from axformer.reporting.deployable import Deployable, Deployables
from benchmarks.rows import Row
from benchmarks.tasks.registry import task_named

# The report was measured in other batches, and rounding differs a little with the batch.
_SAME_LOSS = 1e-4
_BATCH = 64


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
    found = loss_of(result / "model", validation, max_length)
    told = read_report(result)["pruned"]["validation"]["loss"]
    if not math.isclose(found, told, rel_tol=_SAME_LOSS):
        raise ResultError(f"the downloaded model has the validation loss {found}, its report says {told}")
    return found


@torch.inference_mode()
def loss_of(checkpoint: Path, rows: list[Row], max_length: int) -> float:
    """The mean loss of a classifier, with transformers alone, so that it does not rest on AxFormer's own code."""
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()
    tokenizer, task, total = AutoTokenizer.from_pretrained(checkpoint), task_named("classification"), 0.0
    for start in range(0, len(rows), _BATCH):
        inputs = dict(task.encode(tokenizer, rows[start : start + _BATCH], model.config, max_length))
        labels = inputs.pop("labels")
        total += float(torch.nn.functional.cross_entropy(model(**inputs).logits, labels, reduction="sum"))
    return total / len(rows)


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


@dataclass(frozen=True)
class Delivered:
    """A downloaded result."""

    goal: str
    directory: Path
    report: Mapping[str, Any]

    @property
    def forms(self) -> Deployables:
        """What can be deployed of it.

        Raises:
            ResultError: its report has no forms.
        """
        found = deployables(self.report)
        if found is None:
            raise ResultError(f"the report in {self.directory} has no forms")
        return found


def chart_of(results: list[Delivered]) -> str:
    """The SVG text of all forms of all results: held-out metric against speed."""
    before = results[0].forms
    untouched = 100 * (before.rows[0].metric or 0.0)
    series = [FormSeries(one.goal, [_mark(row, untouched) for row in one.forms.rows[1:]]) for one in results]
    return forms_chart("What can be deployed", f"{before.data} {before.metric.replace('_', ' ')}, %", untouched, series)


def _mark(row: Deployable, untouched: float) -> FormMark:
    if row.times is None or row.metric is None:
        raise ResultError(f"the form {row.name} was not measured")
    ends = None if row.interval is None else (untouched + 100 * row.interval[0], untouched + 100 * row.interval[1])
    return FormMark(row.title, row.times, 100 * row.metric, ends)


def advice(results: list[Delivered]) -> str:
    """One sentence: which of all files to deploy."""
    best = [(row, one) for one in results if (row := one.forms.best) is not None]
    if not best:
        return "No form of any result is shown to be both faster and as good: keep your model."
    row, one = max(best, key=lambda found: found[0].times or 0.0)
    return one.forms.sentence.replace(f"Deploy {row.place}", f"Deploy {one.directory}/{row.place}", 1)
