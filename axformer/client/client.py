"""The service as a Python object: :class:`Client`."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from axformer.client import downloads, traces
from axformer.client.answers import Artifact, ArtifactList, Event, Job, Page, PassPath, Queue
from axformer.client.calls import LOOK_EVERY
from axformer.client.errors import ServiceError, WaitTimeoutError
from axformer.client.following import Update, events_of, updates_of
from axformer.client.groups import GroupCalls
from axformer.client.keys import KeyCalls
from axformer.client.references import Reference, References
from axformer.plan.trial import Trial


class Client(GroupCalls, KeyCalls):
    """The service with one key. Requests are sent again where that does nothing twice; threads may share a client.

    Every method raises :class:`~axformer.client.errors.ServiceError`: a :class:`~axformer.client.errors.RefusedError` with
    ``status`` and ``code`` where the service refuses, an :class:`~axformer.client.errors.UnreachableError` where it does
    not answer.
    """

    def submit(
        self,
        name: str,
        *,
        checkpoint: Reference,
        validation: Reference,
        test: Reference | None = None,
        calibrate: Reference | None = None,
        train: Reference | None = None,
        columns: Mapping[str, str] | None = None,
        finetune: Mapping[str, Any] | None = None,
        preset: str | None = None,
        config: Mapping[str, Any] | None = None,
        forms: Sequence[str] | None = None,
        priority: int = 0,
        device: str = "any",
        labels: Mapping[str, str] | None = None,
        webhook: Mapping[str, Any] | None = None,
        hub_token: str | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Queue a job. However often the request is sent, it makes one job.

        Args:
            name: for people.
            checkpoint: the fine-tuned model.
            validation: the data that decides what is removed.
            test: held-out data, measured before and after.
            calibrate: data that weights are fitted on, where the method fits any; it needs no labels.
            train: data that the finished model is trained on.
            columns: names of the columns in all data, where they are not ``text``, ``label`` and so on.
            finetune: how it is trained, for example ``{"epochs": 2}``.
            preset: ``paper``, ``published`` or ``robust``; without it the service's own choice.
            config: knobs that differ from the preset.
            forms: of the result; without them the compact one alone.
            priority: higher is sooner among your team's jobs.
            device: ``any``, ``cpu`` or ``gpu``.
            labels: words to find jobs by.
            webhook: ``{"url": ..., "events": [...]}``, which receives the job's events.
            hub_token: your token for the model hub, if the job's ``hf://`` references need one; deleted when the job ends.
            idempotency_key: your own; the same key with the same body makes one job, in any number of processes.
        """
        sources = {"checkpoint": checkpoint, "validation": validation, "test": test}
        sources |= {"calibrate": calibrate, "train": train}
        how = {"finetune": finetune, "preset": preset, "config": config, "forms": forms, "hub_token": hub_token}
        rest = {"priority": priority, "device": device, "labels": labels, "webhook": webhook}
        body = {"name": name, **References(self.upload).of_job(sources, columns), **how, **rest}
        return self._make(Job, "/jobs", body, idempotency_key)

    def jobs(
        self,
        *,
        states: Sequence[str] = (),
        kinds: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        page: int | None = None,
    ) -> Iterator[Job]:
        """Your team's jobs, newest first, read page by page as they are taken.

        Args:
            states: only in these.
            kinds: only of these: ``pass``, ``export``.
            labels: only with all of these.
            page: jobs of one request.
        """
        asked: dict[str, Any] = {"state": list(states), "kind": list(kinds)}
        asked["label"] = [f"{key}:{value}" for key, value in (labels or {}).items()]
        if page is not None:
            asked["limit"] = page
        return self._pages(Page[Job, str], "/jobs", asked)

    def job(self, job_id: str) -> Job:
        """How a job stands, and while it is queued at which place."""
        return self._connection.read(Job, "GET", _path(job_id))

    def trace(self, job_id: str, after: int = -1, pass_number: int | None = None) -> Iterator[Trial]:
        """The trials that a job has so far, behind number ``after``. A connection that breaks is made again.

        With ``order=search`` they are those of the pass that runs, or at the end is kept, or of the one with this number.
        """
        return traces.trials(self._connection, _path(job_id), after, pass_number)

    def save_trace(self, job_id: str, path: str | Path, form: str = "jsonl") -> Path:
        """Write the trials that a job has so far as ``csv``, ``jsonl`` or ``parquet``; the file is there once it is whole."""
        return traces.save(self._connection, _path(job_id), Path(path), form)

    def stream(self, job_id: str, after: int = 0) -> Iterator[Event]:
        """What happens to a job, as it happens, until it has ended: each event behind number ``after`` once, in order.

        A stream that breaks off goes on behind the last event, for as long as ``Patience.outage`` allows.
        """
        return events_of(self._connection, _path(job_id), after, lambda: self.job(job_id).has_ended)

    def follow(
        self, job_id: str, *, every: float = LOOK_EVERY, lost: Callable[[ServiceError], None] = lambda _: None
    ) -> Iterator[Update]:
        """How a job stands with the trials that are new, every so many seconds, until it has ended.

        Args:
            job_id: of the job.
            every: seconds between two looks.
            lost: called with each failure to reach the service; trying goes on for as long as ``Patience.outage`` allows.
        """
        return updates_of(
            lambda: self.job(job_id),
            lambda pass_number, after: self.trace(job_id, after, pass_number),
            self._patience,
            every=every,
            lost=lost,
        )

    def wait(self, job_id: str, timeout: float | None = None, *, every: float = LOOK_EVERY) -> Job:
        """The job once it has ended, however it ended: see ``has_succeeded`` and ``error``.

        Args:
            job_id: of the job.
            timeout: most seconds to wait; without it for ever.
            every: seconds between two looks.

        Raises:
            WaitTimeoutError: it has not ended in time. It goes on.
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
        """Take a job off its worker at the next trial; it keeps its trace."""
        return self._steer(job_id, "pause")

    def resume(self, job_id: str) -> Job:
        """Queue a paused job again."""
        return self._steer(job_id, "resume")

    def retry(self, job_id: str) -> Job:
        """Queue a failed or cancelled job afresh. Not sent again where it may have been served: the job is queued then."""
        return self._steer(job_id, "retry", again=False)

    def delete(self, job_id: str) -> None:
        """Delete a job that has ended with its trace, events and files. Not sent again where it may have been served."""
        self._connection.ask("DELETE", _path(job_id), again=False)

    def queue(self) -> Queue:
        """Where your team's unfinished jobs stand, and how many workers there are."""
        return self._connection.read(Queue, "GET", "/queue")

    def path(self, job_id: str) -> PassPath:
        """Every model that a job's pass went through, the untouched one first; none before the job has succeeded."""
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
        """Queue a job that hands out the model which stands after trial ``seq`` of a finished job, without another pass.

        Args:
            job_id: of the finished job.
            seq: of an accepted trial; 0 is the untouched model.
            name: for people.
            forms: of the result; without them the compact one alone.
            hub_token: as in :meth:`submit`.
            idempotency_key: as in :meth:`submit`.
        """
        body = {"name": name, "forms": forms, "hub_token": hub_token}
        return self._make(Job, f"{_path(job_id)}/path/{seq}/export", body, idempotency_key)

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
        """Bring a finished job's files, each compared with its SHA-256; one that is there and whole is not fetched again.

        What broke off goes on where it ended, in this call or in a later one. A file is seen under its name only when it is
        whole.

        Args:
            job_id: of the job.
            directory: where the files go; it is made.
            names: of files; without them all but ``artifact.tar.gz``, which holds all others once more.
            on_progress: called with the number of bytes that arrived since the last call.

        Raises:
            TransferError: there is no such file, its name leads out of the directory, or other bytes arrive than promised.
        """
        target = Path(directory)
        chosen = downloads.choose(self.artifacts(job_id), names)
        return [downloads.fetch(self._connection, _path(job_id), one, target, on_progress) for one in chosen]

    def _steer(self, job_id: str, verb: str, *, again: bool = True) -> Job:
        return self._connection.read(Job, "POST", f"{_path(job_id)}/{verb}", again=again)


def _path(job_id: str) -> str:
    return f"/jobs/{quote(job_id, safe='')}"
