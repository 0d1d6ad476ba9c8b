"""Single-label classification of texts and text pairs."""

from typing import Any

import torch
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from torch import Tensor
from torch.nn import functional

from axformer.data import Label, Rows
from axformer.errors import DataError


class Classification:
    """One class a sample; the loss is the cross-entropy."""

    pooled = True
    name = "classification"

    def labels(self, rows: Rows, config: Any) -> Tensor:
        names = {str(name): int(index) for name, index in (config.label2id or {}).items()}
        classes = [self._class(value, names, config.num_labels, rows, row) for row, value in enumerate(rows.label, 1)]
        if len(set(classes)) == 1:
            raise DataError(
                f"data file '{rows.source}' has only one class, '{rows.label[0]}', in its {len(rows)} rows; "
                "a pass needs samples of at least two"
            )
        return torch.tensor(classes)

    def _class(self, value: Label, names: dict[str, int], count: int, rows: Rows, row: int) -> int:
        if str(value) in names:
            return names[str(value)]
        number = int(value) if isinstance(value, int) or (str(value).isascii() and str(value).isdigit()) else -1
        if not 0 <= number < count:
            raise DataError(
                f"data file '{rows.source}', row {row}: label {value!r} is unknown to the model; "
                f"it knows {', '.join(f'{index} ({name})' for name, index in names.items())}"
            )
        return number

    def losses(self, output, batch) -> Tensor:
        logits, labels = output.logits, batch.labels
        return functional.cross_entropy(logits, labels, reduction="none")

    def metrics(self, logits: Tensor, labels: Tensor) -> dict[str, float]:
        predicted, expected = logits.argmax(dim=-1).numpy(), labels.numpy()
        return {
            "accuracy": float(accuracy_score(expected, predicted)),
            "matthews_correlation": float(matthews_corrcoef(expected, predicted)),
            "f1_macro": float(f1_score(expected, predicted, average="macro", zero_division=0.0)),
        }
