"""The service as a Python object: :class:`Client`."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from axformer.client import downloads, traces
from axformer.client.address import find_address
from axformer.client.answers import (
    Artifact,
    ArtifactList,
    AuditEntry,
    Event,
    Group,
    Item,
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
from axformer.client.connection import Connection
from axformer.client.errors import ServiceError, TransferError, WaitTimeoutError
from axformer.client.following import Update, events_of, updates_of
from axformer.client.packing import Watched, packed
from axformer.client.patience import Patience
from axformer.client.references import Reference, References
from axformer.trial import Trial

_LOOK_EVERY = 1.0
"""Seconds between two looks at a job; a worker stores new trials no more often."""
_KEY_BYTES = 16
"""Of an ``Idempotency-Key``: no two are ever the same."""


class Client:
    """The service with one key. Requests are sent again where that does nothing twice; threads may share a client.

    Every method raises :class:`~axformer.client.errors.ServiceError`: a :class:`~axformer.client.errors.RefusedError` with
    ``status`` and ``code`` where the service refuses, an :class:`~axformer.client.errors.UnreachableError` where it does
    not answer.
    """

    def __init__(self, url: str | None = None, api_key: str | None = None, *, patience: Patience | None = None) -> None:
        """Take an address and a key.

        Args:
            url: of the service; without it ``AXFORMER_URL``, what ``axformer login`` has stored, or ``var/serve.json``.
            api_key: of your team; without it ``AXFORMER_API_KEY`` or the one that was stored with the address.
            patience: how long to wait and how often to try again.

        Raises:
            AddressError: there is no address or no key.
        """
        self._patience = patience or Patience()
        address = find_address(url, api_key)
        self.url = address.url
        self._connection = Connection(address, self._patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._connection.close()

    def upload(self, path: str | Path, heed: Callable[[int], None] = lambda _: None) -> Upload:
        """Send a file, or the directory of a checkpoint as an archive of its configuration, tokenizer and safetensors.

        The file is read in pieces. It is sent again where the way to the service breaks; should the first have arrived after
        all, it stays as a second copy that no job names, until retention removes it.

        Args:
            path: of the file or directory.
            heed: told of each piece how many bytes were sent; less than 0 where sending begins again.

        Raises:
            InputError: the path cannot be read, or the directory is no checkpoint.
            TransferError: the service has received other bytes than were sent.
        """
        with packed(Path(path)) as sent:
            files = {"file": (sent.name, Watched(sent.file, heed))}
            stored = self._connection.read(Upload, "POST", "/uploads", files=files)
        if stored.sha256 != sent.sha256:
            raise TransferError(f"'{path}' has changed while it was sent, or on the way ({stored.id}); send it again")
        return stored

    def submit(
        self,
        name: str,
        *,
        checkpoint: Reference,
        validation: Reference,
        test: Reference | None = None,
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
            train: data that the finished model is trained on.
            columns: names of the columns in all data, where they are not ``text``, ``label`` and so on.
            finetune: how it is trained, for example ``{"epochs": 2}``.
            preset: ``paper``, ``published`` or ``robust``; without it the service's own choice.
            config: knobs that differ from the preset.
            forms: of the result; without it the service's own choice.
            priority: higher is sooner among your team's jobs.
            device: ``any``, ``cpu`` or ``gpu``.
            labels: words to find jobs by.
            webhook: ``{"url": ..., "events": [...]}``, told of the job's events.
            hub_token: of yours for the model hub, where the job's ``hf://`` references need it; forgotten when the job ends.
            idempotency_key: your own; the same key with the same body makes one job, in any number of processes.
        """
        sources = {"checkpoint": checkpoint, "validation": validation, "test": test, "train": train}
        how = {"finetune": finetune, "preset": preset, "config": config, "forms": forms, "hub_token": hub_token}
        rest = {"priority": priority, "device": device, "labels": labels, "webhook": webhook}
        body = {"name": name, **References(self.upload).of_job(sources, columns), **how, **rest}
        said = {field: value for field, value in body.items() if value is not None}
        headers = {"Idempotency-Key": idempotency_key or secrets.token_hex(_KEY_BYTES)}
        return self._connection.read(Job, "POST", "/jobs", json=said, headers=headers)

    def submit_group(
        self,
        name: str,
        *,
        sets: Sequence[Mapping[str, Any]],
        settings: Sequence[Mapping[str, Any]],
        seeds: Sequence[int] = (),
        forms: Sequence[str] | None = None,
        priority: int = 0,
        device: str = "any",
        labels: Mapping[str, str] | None = None,
        hub_token: str | None = None,
        idempotency_key: str | None = None,
    ) -> Group:
        """Queue a grid of jobs: each checkpoint of each set with each setting and each seed. All are queued, or none.

        Args:
            name: for people.
            sets: each a ``name``, its ``checkpoints`` (fine-tuned for the same data, for example with several seeds), and
                ``validation``, perhaps ``test`` and ``columns``, as in :meth:`submit`. A path is uploaded once.
            settings: each a ``name``, and perhaps a ``preset`` and a ``config`` of knobs.
            seeds: values of the knob ``seed``; without them each setting has its own.
            forms: of the results; without them the compact one alone.
            priority: higher is sooner among your team's jobs.
            device: ``any``, ``cpu`` or ``gpu``.
            labels: words to find jobs by.
            hub_token: as in :meth:`submit`.
            idempotency_key: your own; the same key with the same body makes one group.
        """
        references = References(self.upload)
        how = {"settings": list(settings), "seeds": list(seeds), "forms": forms, "hub_token": hub_token}
        rest = {"priority": priority, "device": device, "labels": labels}
        body = {"name": name, "sets": [references.of_set(one) for one in sets], **how, **rest}
        said = {field: value for field, value in body.items() if value is not None}
        headers = {"Idempotency-Key": idempotency_key or secrets.token_hex(_KEY_BYTES)}
        return self._connection.read(Group, "POST", "/groups", json=said, headers=headers)

    def groups(self) -> Iterator[Group]:
        """Your team's groups, newest first."""
        return self._pages(Page[Group, str], "/groups", {})

    def group(self, group_id: str) -> Group:
        """How a group stands, with the table of what came of it so far."""
        return self._connection.read(Group, "GET", _group_path(group_id))

    def wait_for_group(
        self, group_id: str, *, every: float = _LOOK_EVERY, heed: Callable[[Group], None] = lambda _: None
    ) -> Group:
        """The group once all its jobs have ended, however they ended.

        Args:
            group_id: of the group.
            every: seconds between two looks.
            heed: told of each look.
        """
        while not (found := self.group(group_id)).has_ended:
            heed(found)
            time.sleep(every)
        return found

    def cancel_group(self, group_id: str) -> Group:
        """Cancel all jobs of a group that have not ended."""
        return self._connection.read(Group, "POST", f"{_group_path(group_id)}/cancel")

    def retry_group(self, group_id: str) -> Group:
        """Queue the jobs of a group afresh that have failed or were cancelled. Not sent again where it may have been served."""
        return self._connection.read(Group, "POST", f"{_group_path(group_id)}/retry", again=False)

    def delete_group(self, group_id: str) -> None:
        """Delete a group whose jobs have all ended, with the jobs. Not sent again where it may have been served."""
        self._connection.ask("DELETE", _group_path(group_id), again=False)

    def jobs(
        self, *, states: Sequence[str] = (), labels: Mapping[str, str] | None = None, page: int | None = None
    ) -> Iterator[Job]:
        """Your team's jobs, newest first, read page by page as they are taken.

        Args:
            states: only in these.
            labels: only with all of these.
            page: jobs of one request.
        """
        asked: dict[str, Any] = {"state": list(states)}
        asked["label"] = [f"{key}:{value}" for key, value in (labels or {}).items()]
        if page is not None:
            asked["limit"] = page
        return self._pages(Page[Job, str], "/jobs", asked)

    def job(self, job_id: str) -> Job:
        """How a job stands, and while it is queued at which place."""
        return self._connection.read(Job, "GET", _path(job_id))

    def trace(self, job_id: str, after: int = -1) -> Iterator[Trial]:
        """The trials that a job has so far, behind number ``after``. A connection that breaks is made again."""
        return traces.trials(self._connection, _path(job_id), after)

    def save_trace(self, job_id: str, path: str | Path, form: str = "jsonl") -> Path:
        """Write the trials that a job has so far as ``csv``, ``jsonl`` or ``parquet``; the file is there once it is whole."""
        return traces.save(self._connection, _path(job_id), Path(path), form)

    def stream(self, job_id: str, after: int = 0) -> Iterator[Event]:
        """What happens to a job, as it happens, until it has ended: each event behind number ``after`` once, in order.

        A stream that breaks off goes on behind the last event, for as long as ``Patience.outage`` allows.
        """
        return events_of(self._connection, _path(job_id), after, lambda: self.job(job_id).has_ended)

    def follow(
        self, job_id: str, *, every: float = _LOOK_EVERY, lost: Callable[[ServiceError], None] = lambda _: None
    ) -> Iterator[Update]:
        """How a job stands with the trials that are new, every so many seconds, until it has ended.

        Args:
            job_id: of the job.
            every: seconds between two looks.
            lost: told of each failure to reach the service; trying goes on for as long as ``Patience.outage`` allows.
        """
        return updates_of(
            lambda: self.job(job_id),
            lambda after: self.trace(job_id, after),
            self._patience,
            every=every,
            lost=lost,
        )

    def wait(self, job_id: str, timeout: float | None = None, *, every: float = _LOOK_EVERY) -> Job:
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
        said = {field: value for field, value in body.items() if value is not None}
        headers = {"Idempotency-Key": idempotency_key or secrets.token_hex(_KEY_BYTES)}
        return self._connection.read(Job, "POST", f"{_path(job_id)}/path/{seq}/export", json=said, headers=headers)

    def artifacts(self, job_id: str) -> list[Artifact]:
        """The files of a finished job; there are none before it has succeeded."""
        return self._connection.read(ArtifactList, "GET", f"{_path(job_id)}/artifacts").data

    def download(
        self,
        job_id: str,
        directory: str | Path,
        names: Sequence[str] | None = None,
        heed: Callable[[int], None] = lambda _: None,
    ) -> list[Path]:
        """Bring a finished job's files, each compared with its SHA-256; one that is there and whole is not fetched again.

        What broke off goes on where it ended, in this call or in a later one. A file is seen under its name only when it is
        whole.

        Args:
            job_id: of the job.
            directory: where the files go; it is made.
            names: of files; without them all but ``artifact.tar.gz``, which holds all others once more.
            heed: told how many more bytes are there.

        Raises:
            TransferError: there is no such file, its name leads out of the directory, or other bytes arrive than promised.
        """
        target = Path(directory)
        chosen = downloads.choose(self.artifacts(job_id), names)
        return [downloads.fetch(self._connection, _path(job_id), one, target, heed) for one in chosen]

    def me(self) -> Me:
        """Which team and key this is, and what the key may do."""
        return self._connection.read(Me, "GET", "/me")

    def keys(self) -> Iterator[Key]:
        """Your team's keys, newest first, also those that are not valid any more. For admins."""
        return self._pages(Page[Key, str], "/keys", {})

    def create_key(self, name: str, scope: str = "write", expires_at: datetime | None = None) -> NewKey:
        """Make a key; its text is told this once. Not sent again where it may have been served. For admins.

        Args:
            name: what it is for.
            scope: ``read``, ``write`` or ``admin``; each includes those before it.
            expires_at: from when on it is refused, with a time zone; without it never.
        """
        body = {"name": name, "scopes": [scope], "expires_at": None if expires_at is None else expires_at.isoformat()}
        return self._connection.read(NewKey, "POST", "/keys", json=body, again=False)

    def rotate_key(self, key_id: str, grace_hours: float | None = None) -> RotatedKey:
        """Make a key that takes the place of another, which stays valid for a while. Not sent again where it may have been
        served. For admins.

        Args:
            key_id: of the old key.
            grace_hours: how long the old one stays valid; without it what the operator has set.
        """
        body = {} if grace_hours is None else {"grace_hours": grace_hours}
        return self._connection.read(
            RotatedKey, "POST", f"/keys/{quote(key_id, safe='')}/rotate", json=body, again=False
        )

    def revoke_key(self, key_id: str, *, even_last: bool = False) -> None:
        """Let a key be valid no more, at once. The last one for admins is kept unless ``even_last``. For admins."""
        asked = {"even_last": even_last}
        self._connection.ask("DELETE", f"/keys/{quote(key_id, safe='')}", params=asked)

    def audit(self) -> Iterator[AuditEntry]:
        """Who of your team changed what, newest first. For admins."""
        return self._pages(Page[AuditEntry, int], "/audit", {})

    def _pages(self, shape: type[Page[Item, Any]], path: str, asked: Mapping[str, Any]) -> Iterator[Item]:
        """The items of a list, page by page as they are taken."""
        after: dict[str, Any] = {}
        while True:
            answer = self._connection.read(shape, "GET", path, params={**asked, **after})
            yield from answer.data
            if not answer.has_more:
                return
            after = {"after": answer.next}

    def _steer(self, job_id: str, verb: str, *, again: bool = True) -> Job:
        return self._connection.read(Job, "POST", f"{_path(job_id)}/{verb}", again=again)


def _group_path(group_id: str) -> str:
    return f"/groups/{quote(group_id, safe='')}"


def _path(job_id: str) -> str:
    return f"/jobs/{quote(job_id, safe='')}"
