"""Fine-tuning as a repair: the training data, the training and its record."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from axformer.data.encoding import Encoded
from axformer.data.rows import Rows
from axformer.intake.checkpoint import Checkpoint
from axformer.model.number_format import cast, computing_in
from axformer.plan.plan import Plan
from axformer.repair.base import Repaired
from axformer.repair.finetune import finetune
from axformer.repair.settings import FinetuneSettings
from axformer.scores.sets import Sets, scores_of
from axformer.wire.data_summary import DataSummary
from axformer.wire.report import Finetuning


@dataclass(frozen=True)
class Training:
    """Fine-tuning as a repair: the training rows as read and as encoded for the model, and the settings."""

    rows: Rows
    encoded: Encoded
    settings: FinetuneSettings

    def carry_out(
        self,
        checkpoint: Checkpoint,
        model: Any,
        plan: Plan,  # noqa: ARG002 - the model is already cut
        sets: Sets,
        check_cancelled: Callable[[], None],
    ) -> Repaired:
        """Train a compact model in place, in float32. Before that, it is measured in the checkpoint's number format."""
        with computing_in(model, checkpoint.dtype):
            before = scores_of(model, checkpoint.task, sets)
        started = time.monotonic()
        finetune(model, checkpoint.task, checkpoint.tokenizer, self.encoded, self.settings, check_cancelled)
        record = Finetuning(
            settings=self.settings.model_dump(mode="json"),
            data=DataSummary(rows=len(self.rows), cut=self.encoded.cut, sha256=self.rows.digest()),
            seconds=time.monotonic() - started,
            before=before,
        )
        return Repaired(cast(model, checkpoint.dtype), record)
