"""The client's calls for groups of jobs."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from axformer.client.answers import Group, Page
from axformer.client.calls import LOOK_EVERY, Calls
from axformer.client.references import References


class GroupCalls(Calls):
    """Groups: grids of jobs that are queued together, with a table of their results."""

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
                ``validation``, perhaps ``test``, ``calibrate``, ``train``, ``columns`` and ``head``, as in :meth:`submit`. A
                path is uploaded once.
            settings: each a ``name``, and perhaps a ``goal`` or ``preset``, a ``config`` of knobs and ``finetune``.
            seeds: values of the knob ``seed``; without them each setting has its own.
            forms: forms of the results; by default only the compact one.
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
        return self._make(Group, "/groups", body, idempotency_key)

    def groups(self) -> Iterator[Group]:
        """Your team's groups, newest first."""
        return self._pages(Page[Group, str], "/groups", {})

    def group(self, group_id: str) -> Group:
        """The state of a group, with the table of its results so far."""
        return self._connection.read(Group, "GET", _group_path(group_id))

    def wait_for_group(
        self, group_id: str, *, every: float = LOOK_EVERY, on_progress: Callable[[Group], None] = lambda _: None
    ) -> Group:
        """The group once all its jobs have ended, however they ended.

        Args:
            group_id: of the group.
            every: seconds between polls.
            on_progress: called with the group after each poll.
        """
        while not (found := self.group(group_id)).has_ended:
            on_progress(found)
            time.sleep(every)
        return found

    def cancel_group(self, group_id: str) -> Group:
        """Cancel all jobs of a group that have not ended."""
        return self._connection.read(Group, "POST", f"{_group_path(group_id)}/cancel")

    def retry_group(self, group_id: str) -> Group:
        """Queue the failed and cancelled jobs of a group from scratch. Not retried if the service may have acted."""
        return self._connection.read(Group, "POST", f"{_group_path(group_id)}/retry", again=False)

    def delete_group(self, group_id: str) -> None:
        """Delete a group whose jobs have all ended, with the jobs. Not retried if the service may have acted."""
        self._connection.ask("DELETE", _group_path(group_id), again=False)


def _group_path(group_id: str) -> str:
    return f"/groups/{quote(group_id, safe='')}"
