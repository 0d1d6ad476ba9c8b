"""Agreement between the forms of a model and the model in memory, over a whole data set."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from axformer.data.batches import Batch, Samples
from axformer.errors import ArtifactError
from axformer.evaluation.plain import Predictions, run
from axformer.tasks.base import Task


@dataclass(frozen=True)
class Agreement:
    """The comparison of one form with the model in memory."""

    difference: float
    """The largest absolute difference of a logit."""
    predictions: Predictions
    """The form's predictions on the data set."""


@torch.inference_mode()
def compare_outputs(
    reference: Any, forms: Mapping[str, Any], task: Task, samples: Samples
) -> tuple[Predictions, dict[str, Agreement]]:
    """Run forms, and the model they were made from, over a data set, batch by batch.

    Args:
        reference: the model in memory.
        forms: the forms by name; they are called like the model, and each may be on a different device.
        task: the model's task.
        samples: the data set, on the device of the model in memory.

    Returns:
        The predictions of the model in memory, and the agreement of each form with it.

    Raises:
        ArtifactError: a form returns values that are not finite numbers.
    """
    of_reference, apart = _no_predictions(samples), dict.fromkeys(forms, 0.0)
    by_form = {name: _no_predictions(samples) for name in forms}
    for batch in samples.batches:
        output = run(reference, batch)
        _take(output, task, batch, of_reference)
        expected = _logits(output, batch, task)
        for name, form in forms.items():
            own_batch = _on_device(batch, form.device)
            output = run(form, own_batch)
            _take(output, task, own_batch, by_form[name])
            apart[name] = max(apart[name], _difference(expected, _logits(output, batch, task), name))
    return of_reference, {name: Agreement(apart[name], by_form[name]) for name in forms}


@torch.inference_mode()
def predictions_of(form: Any, task: Task, samples: Samples) -> Predictions:
    """Run a form over a data set that may be on another device.

    Args:
        form: called like a model.
        task: the model's task.
        samples: the data set.
    """
    found = _no_predictions(samples)
    for batch in samples.batches:
        own_batch = _on_device(batch, form.device)
        _take(run(form, own_batch), task, own_batch, found)
    return found


def _no_predictions(samples: Samples) -> Predictions:
    rows = len(samples.sample_of_row)
    return Predictions(torch.empty(rows), [None] * rows)


def _take(output: Any, task: Task, batch: Batch, predictions: Predictions) -> None:
    """Store the predictions of a model for one batch."""
    predictions.losses[batch.rows.cpu()] = task.losses(output, batch).cpu()
    for row, answer in zip(batch.rows.tolist(), task.answers(output, batch), strict=True):
        predictions.answers[row] = answer


def _difference(expected: Mapping[str, Tensor], actual: Mapping[str, Tensor], form: str) -> float:
    largest = 0.0
    for name, values in expected.items():
        difference = torch.where(actual[name] == values, 0.0, (actual[name] - values).abs())
        if not difference.isfinite().all():
            raise ArtifactError(f"the form '{form}' gives back {name} that are not numbers; it was not published")
        largest = max(largest, float(difference.max()))
    return largest


def _logits(output: Mapping[str, Any], batch: Batch, task: Task) -> dict[str, Tensor]:
    """The logits of an output, on the CPU. For heads with an answer for every token, those of padding are left out."""
    logits = {name: values.cpu() for name, values in output.items() if name.endswith("logits")}
    if task.pooled:
        return logits
    real = batch.inputs["attention_mask"].bool().cpu()
    return {name: values[real] for name, values in logits.items()}


def _on_device(batch: Batch, device: Any) -> Batch:
    inputs = {name: values.to(device) for name, values in batch.inputs.items()}
    return replace(batch, rows=batch.rows.to(device), inputs=inputs, labels=batch.labels.to(device))
