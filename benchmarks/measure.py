"""Measure a checkpoint on labelled rows with transformers alone, so that no figure rests on AxFormer's own code."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from benchmarks.rows import Row

_BATCH_SIZE = 64


def measure(checkpoint: Path, rows: Sequence[Row], max_length: int) -> dict[str, float]:
    """Mean loss, and accuracy and Matthews correlation, or Pearson correlation for regression."""
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()
    logits = torch.cat([_logits(model, tokenizer, batch, max_length) for batch in _in_batches(rows)])
    if model.config.num_labels == 1:
        truth = torch.tensor([float(row.label) for row in rows])
        loss = torch.nn.functional.mse_loss(logits[:, 0], truth).item()
        return {"loss": loss, "pearson": float(np.corrcoef(logits[:, 0].numpy(), truth.numpy())[0, 1])}
    classes = torch.tensor([model.config.label2id[row.label] for row in rows])
    loss = torch.nn.functional.cross_entropy(logits, classes).item()
    return {"loss": loss, **class_metrics(logits.argmax(-1).numpy(), classes.numpy())}


def class_metrics(predicted: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> dict[str, float]:
    """Accuracy, and Matthews correlation: that of the two one-hot codings, 0 where only one class is seen."""
    classes = np.arange(max(int(predicted.max()), int(truth.max())) + 1)
    x = predicted[:, None] == classes
    y = truth[:, None] == classes
    x, y = x - x.mean(0), y - y.mean(0)
    spread = float(np.sqrt((x * x).sum() * (y * y).sum()))
    return {
        "accuracy": float((predicted == truth).mean()),
        "matthews": float((x * y).sum()) / spread if spread else 0.0,
    }


def _in_batches(rows: Sequence[Row]) -> list[Sequence[Row]]:
    return [rows[start : start + _BATCH_SIZE] for start in range(0, len(rows), _BATCH_SIZE)]


@torch.inference_mode()
def _logits(model: Any, tokenizer: Any, rows: Sequence[Row], max_length: int) -> torch.Tensor:
    pairs = [row.text_pair for row in rows] if rows[0].text_pair is not None else None
    inputs = tokenizer(
        [row.text for row in rows], pairs, truncation=True, max_length=max_length, padding=True, return_tensors="pt"
    )
    logits: torch.Tensor = model(**inputs).logits
    return logits
