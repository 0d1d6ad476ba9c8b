"""The training after a pass: what it learns from, and what it did to the model."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from axformer.data.encoding import Encoded
from axformer.data.rows import Rows
from axformer.intake.checkpoint import Checkpoint
from axformer.model.number_format import cast, computing_in
from axformer.repair.finetune import finetune
from axformer.repair.settings import FinetuneSettings
from axformer.reporting.measure import Sets, scores_of
from axformer.wire.report import DataSummary, Finetuning


@dataclass(frozen=True)
class Trained:
    """A model that was trained, and what that was."""

    model: Any
    """In the number format of its checkpoint."""
    finetuning: Finetuning


@dataclass(frozen=True)
class Training:
    """Rows to learn from, as they were read and as the model takes them, and how."""

    rows: Rows
    encoded: Encoded
    settings: FinetuneSettings

    def carry_out(self, checkpoint: Checkpoint, model: Any, sets: Sets, heed: Callable[[], None]) -> Trained:
        """Train a compact model in place, in float32, measured before as it would have been handed out. ``heed`` is called
        before every step and may end it by raising."""
        with computing_in(model, checkpoint.dtype):
            before = scores_of(model, checkpoint.task, sets)
        started = time.monotonic()
        finetune(model, checkpoint.task, checkpoint.tokenizer, self.encoded, self.settings, heed)
        told = Finetuning(
            settings=self.settings.model_dump(mode="json"),
            data=DataSummary(rows=len(self.rows), cut=self.encoded.cut, sha256=self.rows.digest()),
            seconds=time.monotonic() - started,
            before=before,
        )
        return Trained(cast(model, checkpoint.dtype), told)
