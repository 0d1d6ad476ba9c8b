"""Analyses from a client: posted; then they are jobs like others."""

from collections.abc import Mapping, Sequence
from typing import Any

from axformer.client.answers import Job
from axformer.client.calls import Calls
from axformer.client.references import Reference, References


class AnalysisCalls(Calls):
    """What a client does with analyses."""

    def submit_analysis(
        self,
        name: str,
        *,
        checkpoint: Reference,
        validation: Reference,
        train: Reference | None = None,
        against: Reference | None = None,
        columns: Mapping[str, str] | None = None,
        reports: Sequence[str] | None = None,
        rows: int | None = None,
        max_length: int | None = None,
        priority: int = 0,
        device: str = "any",
        labels: Mapping[str, str] | None = None,
        webhook: Mapping[str, Any] | None = None,
        hub_token: str | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Queue an analysis: a job whose ``findings`` say where a model is redundant. The model stays as it is.

        Args:
            name: for people.
            checkpoint: the fine-tuned model.
            validation: labelled rows to measure on.
            train: other labelled rows, which linear probes learn from.
            against: the model that the checkpoint was trained from, for the report ``drift``.
            columns: names of the columns in all data, if they differ from ``text``, ``label`` and so on.
            reports: names of reports; by default all that the inputs allow.
            rows: most rows of each data set.
            max_length: cut inputs to this many tokens.
            priority: as in :meth:`Client.submit`.
            device: as there.
            labels: as there.
            webhook: as there.
            hub_token: as there.
            idempotency_key: as there.
        """
        data = References(self.upload).of_job({"validation": validation, "train": train}, columns)
        models = References(self.upload).of_job({"checkpoint": checkpoint, "against": against}, None)
        how = {"reports": reports, "rows": rows, "max_length": max_length, "hub_token": hub_token}
        rest = {"priority": priority, "device": device, "labels": labels, "webhook": webhook}
        return self._make(Job, "/analyses", {"name": name, **models, **data, **how, **rest}, idempotency_key)
