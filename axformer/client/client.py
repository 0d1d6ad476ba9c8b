"""The service as a Python object: :class:`Client`."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from axformer.client import downloads, traces
from axformer.client.answers import (
    Artifact,
    ArtifactList,
    AuditEntry,
    Event,
    Job,
    Key,
    Me,
    NewKey,
    Page,
    PassPath,
    Queue,
    RotatedKey,
    Upload,
)
from axformer.client.calls import LOOK_EVERY, Calls
from axformer.client.errors import ServiceError, WaitTimeoutError
from axformer.client.following import Update, events_of, updates_of
from axformer.config.nearest import or_all
from axformer.errors import ConfigError
from axformer.plan.trial import Trial
from axformer.wire.analyses import AnalysisCreate
from axformer.wire.base import Schema
from axformer.wire.jobs import JobCreate
from axformer.wire.labelling import LabellingRead, NeededRead
from axformer.wire.run import DATA

_MODELS = ("checkpoint", "against")
"""The fields of jobs and analyses that hold models."""


class Client(Calls):
    """The service with one key. Idempotent requests are retried; threads may share a client.

    Every method raises :class:`~axformer.client.errors.ServiceError`: a :class:`~axformer.client.errors.RefusedError` with
    ``status`` and ``code`` if the service refuses, an :class:`~axformer.client.errors.UnreachableError` if it does not answer.
    """

    def submit(
        self, name: str, *, columns: Mapping[str, str] | None = None, idempotency_key: str | None = None, **job: Any
    ) -> Job:
        """Queue a job. However often the request is sent, it creates one job.

        Args:
            columns: names of the columns in all data, if they differ from ``text``, ``label`` and so on.
            idempotency_key: your own; the same key with the same body makes one job, in any number of processes.
            **job: the other fields of :class:`axformer.wire.jobs.JobCreate`. Of the run these are ``checkpoint``,
                ``validation`` or ``unlabelled`` or both, and perhaps ``test``, ``calibrate``, ``train``, ``finetune``,
                ``head``, ``goal`` or ``preset``, ``config`` and ``forms``; beside it ``priority``, ``device``,
                ``device_memory``, ``labels``, ``webhook``, ``deliver`` and ``hub_token``. Checkpoint and data are references,
                uploads, or local paths, which are uploaded.

        Raises:
            ConfigError: a field is none of a job.
        """
        return self._post("/jobs", JobCreate, {"name": name, **job}, columns, idempotency_key)

    def submit_analysis(
        self,
        name: str,
        *,
        columns: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        **analysis: Any,
    ) -> Job:
        """Queue an analysis: a job whose ``findings`` say where a model is redundant. The model stays as it is.

        Args:
            columns: as for :meth:`submit`, as is ``idempotency_key``.
            **analysis: the other fields of :class:`axformer.wire.analyses.AnalysisCreate`: ``checkpoint``, ``validation`` and
                perhaps ``train``, ``against``, ``reports``, ``rows`` and ``max_length``; beside them ``priority``, ``device``,
                ``device_memory``, ``labels``, ``webhook`` and ``hub_token``.

        Raises:
            ConfigError: a field is none of an analysis.
        """
        return self._post("/analyses", AnalysisCreate, {"name": name, **analysis}, columns, idempotency_key)

    def jobs(
        self,
        *,
        states: Sequence[str] = (),
        kinds: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        outcome: str | None = None,
        page: int | None = None,
    ) -> Iterator[Job]:
        """Your team's jobs, newest first, reading pages as needed.

        Args:
            states: only in these.
            kinds: only of these: ``pass``, ``export``, ``analysis``.
            labels: only with all of these.
            outcome: only succeeded jobs that are ``done``, have ``target_missed`` or are ``not_usable``.
            page: jobs of one request.
        """
        asked: dict[str, Any] = {"state": list(states), "kind": list(kinds)}
        asked["label"] = [f"{key}:{value}" for key, value in (labels or {}).items()]
        if outcome is not None:
            asked["outcome"] = outcome
        if page is not None:
            asked["limit"] = page
        return self._pages(Page[Job, str], "/jobs", asked)

    def page_of(self, job_id: str) -> str:
        """The address of a job's page, for a browser."""
        return f"{self._connection.url}{_path(job_id)}"

    def job(self, job_id: str) -> Job:
        """The state of a job and, while it is queued, its place."""
        return self._connection.read(Job, "GET", _path(job_id))

    def trace(self, job_id: str, after: int = -1) -> Iterator[Trial]:
        """The trials of a job so far, after number ``after``. A broken connection is reopened."""
        return traces.trials(self._connection, _path(job_id), after)

    def save_trace(self, job_id: str, path: str | Path, form: str = "jsonl") -> Path:
        """Write the trials of a job so far as ``csv`` or ``jsonl``; the file appears once it is complete."""
        return traces.save(self._connection, _path(job_id), Path(path), form)

    def stream(self, job_id: str, after: int = 0, *, with_progress: bool = False) -> Iterator[Event]:
        """The events of a job, live until it has ended: each event after number ``after`` once, in order.

        A broken stream continues after the last event, for as long as ``Patience.outage`` allows.

        Args:
            after: number of the last event seen; 0 gives all.
            with_progress: yield ``job.progress`` too, which says during long phases what is done and how far it is: ``data``
                has ``message``, and while trials run ``done``, ``known`` and ``seconds_left``.
        """
        return events_of(
            self._connection, _path(job_id), after, lambda: self.job(job_id).has_ended, with_progress=with_progress
        )

    def follow(
        self, job_id: str, *, every: float = LOOK_EVERY, lost: Callable[[ServiceError], None] = lambda _: None
    ) -> Iterator[Update]:
        """The state of a job with its new trials, polled until it has ended.

        Args:
            every: seconds between polls.
            lost: called with each failure to reach the service; retries last as long as ``Patience.outage`` allows.
        """
        return updates_of(
            lambda: self.job(job_id),
            lambda after: self.trace(job_id, after),
            self._patience,
            every=every,
            lost=lost,
        )

    def wait(self, job_id: str, timeout: float | None = None, *, every: float = LOOK_EVERY) -> Job:
        """The job once it has ended, however it ended: see ``has_succeeded`` and ``error``.

        Args:
            timeout: most seconds to wait; None to wait forever.
            every: seconds between polls.

        Raises:
            WaitTimeoutError: the job has not ended in time; it continues.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while not (job := self.job(job_id)).has_ended:
            left = every if until is None else min(every, until - time.monotonic())
            if left <= 0:
                raise WaitTimeoutError(f"job {job_id} is {job.state} after {timeout:g} s; it goes on, wait again")
            time.sleep(left)
        return job

    def cancel(self, job_id: str) -> Job:
        """Cancel a job: a queued one at once, a running one at its next trial."""
        return self._steer(job_id, "cancel")

    def pause(self, job_id: str) -> Job:
        """Pause a job at its next trial; it keeps its trace."""
        return self._steer(job_id, "pause")

    def resume(self, job_id: str) -> Job:
        """Queue a paused job again."""
        return self._steer(job_id, "resume")

    def deliver(self, job_id: str, uri: str, token: str) -> Job:
        """Have the service put a job's files somewhere, now or when it has succeeded; also to repeat what has failed.

        Args:
            uri: ``s3://bucket/prefix`` or ``hf://organisation/name``.
            token: yours for the model hub, or ``KEY_ID:SECRET`` of a bucket; kept until the files are there.
        """
        body = {"uri": uri, "token": token}
        return self._connection.read(Job, "POST", f"{_path(job_id)}/deliver", json=body)

    def retry(self, job_id: str) -> Job:
        """Queue a failed or cancelled job from scratch. Not retried if the service may have acted: the job is then queued."""
        return self._steer(job_id, "retry", again=False)

    def delete(self, job_id: str) -> None:
        """Delete a job that has ended with its trace, events and files. Not retried if the service may have acted."""
        self._connection.ask("DELETE", _path(job_id), again=False)

    def queue(self) -> Queue:
        """The places of your team's unfinished jobs, and the number of workers."""
        return self._connection.read(Queue, "GET", "/queue")

    def path(self, job_id: str) -> PassPath:
        """Every model on the path of a job's pass, the untouched one first; empty before the job has succeeded."""
        return self._connection.read(PassPath, "GET", f"{_path(job_id)}/path")

    def export_point(
        self,
        job_id: str,
        seq: int,
        *,
        name: str | None = None,
        forms: Sequence[str] | None = None,
        hub_token: str | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Queue an export of the model after trial ``seq`` of a finished job, without another pass.

        Args:
            seq: number of an accepted trial; 0 is the untouched model.
            forms: forms of the result; by default only the compact one.
        """
        body = {"name": name, "forms": forms, "hub_token": hub_token}
        return self._make(Job, f"{_path(job_id)}/path/{seq}/export", body, idempotency_key)

    def needed(self, job_id: str) -> NeededRead:
        """The rows of a finished job whose labels may certify a smaller model, and what is certified now."""
        return self._connection.read(NeededRead, "GET", f"{_path(job_id)}/needed")

    def label(self, job_id: str, labels: Mapping[str, Any]) -> LabellingRead:
        """Give labels by the ids of rows, by names or indices, and see what is certified by them; None withdraws one."""
        body = {"data": [{"id": row, "label": label} for row, label in labels.items()]}
        return self._connection.read(LabellingRead, "POST", f"{_path(job_id)}/labels", json=body)

    def artifacts(self, job_id: str) -> list[Artifact]:
        """The files of a finished job; there are none before it has succeeded."""
        return self._connection.read(ArtifactList, "GET", f"{_path(job_id)}/artifacts").data

    def download(
        self,
        job_id: str,
        directory: str | Path,
        names: Sequence[str] | None = None,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> list[Path]:
        """Download a finished job's files and verify their SHA-256; complete files are not fetched again.

        An interrupted download continues where it stopped, in this call or a later one. A file appears under its name only when
        it is complete.

        Args:
            directory: directory for the files, created if missing.
            names: names of files; by default all except ``artifact.tar.gz``, which contains the others.
            on_progress: called with the number of bytes that arrived since the last call.

        Raises:
            TransferError: a file does not exist, its name leads out of the directory, or its digest is wrong.
        """
        target = Path(directory)
        chosen = downloads.choose(self.artifacts(job_id), names)
        return [downloads.fetch(self._connection, _path(job_id), one, target, on_progress) for one in chosen]

    def me(self) -> Me:
        """The team, the id and the scope of the key."""
        return self._connection.read(Me, "GET", "/me")

    def keys(self) -> Iterator[Key]:
        """Your team's keys, newest first, including invalid ones. For admins."""
        return self._pages(Page[Key, str], "/keys", {})

    def create_key(self, name: str, scope: str = "write", expires_at: datetime | None = None) -> NewKey:
        """Create a key; its text is returned only once. Not retried if the service may have acted. For admins.

        Args:
            name: what it is for.
            scope: ``read``, ``write`` or ``admin``; each includes those before it.
            expires_at: when it expires, with a time zone; None for never.
        """
        body = {"name": name, "scopes": [scope], "expires_at": None if expires_at is None else expires_at.isoformat()}
        return self._connection.read(NewKey, "POST", "/keys", json=body, again=False)

    def rotate_key(self, key_id: str, grace_hours: float | None = None) -> RotatedKey:
        """Replace a key; the old one stays valid for a while. Not retried if the service may have acted. For admins.

        Args:
            grace_hours: how long the old one stays valid; None for the operator's setting.
        """
        body = {} if grace_hours is None else {"grace_hours": grace_hours}
        return self._connection.read(
            RotatedKey, "POST", f"/keys/{quote(key_id, safe='')}/rotate", json=body, again=False
        )

    def revoke_key(self, key_id: str, *, even_last: bool = False) -> None:
        """Revoke a key at once. The last admin key is kept unless ``even_last`` is set. For admins."""
        asked = {"even_last": even_last}
        self._connection.ask("DELETE", f"/keys/{quote(key_id, safe='')}", params=asked)

    def audit(self) -> Iterator[AuditEntry]:
        """The changes made by your team, with who made them, newest first. For admins."""
        return self._pages(Page[AuditEntry, int], "/audit", {})

    def _post(
        self,
        path: str,
        shape: type[Schema],
        fields: Mapping[str, Any],
        columns: Mapping[str, str] | None,
        idempotency_key: str | None,
    ) -> Job:
        """Queue a job with some fields of a shape; local paths among its models and data are uploaded, each once."""
        for field in fields:
            if field not in shape.model_fields:
                raise ConfigError(f"{field} is no part of this request; {or_all(field, shape.model_fields)}", field)
        upload, body = cache(self.upload), dict(fields)
        for part in (*_MODELS, *DATA):
            source = fields.get(part)
            if isinstance(source, Path):
                source = upload(source)
            if source is not None:
                body[part] = {"uri": source.uri if isinstance(source, Upload) else source}
                if columns and part in DATA:
                    body[part]["columns"] = dict(columns)
        return self._make(Job, path, body, idempotency_key)

    def _steer(self, job_id: str, verb: str, *, again: bool = True) -> Job:
        return self._connection.read(Job, "POST", f"{_path(job_id)}/{verb}", again=again)


def _path(job_id: str) -> str:
    return f"/jobs/{quote(job_id, safe='')}"
