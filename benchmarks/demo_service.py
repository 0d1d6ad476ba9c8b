"""The service over HTTP, as a program of a team would use it."""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from axformer.trial import Trial
from benchmarks.demo_stack import Address

_SECONDS = 120.0
"""Patience with one answer; an upload of 90 MB to a busy disk takes some."""
_POLL_SECONDS = 0.5
_TRIALS_A_PAGE = 500
_ENDED = ("succeeded", "failed", "cancelled")


class ServiceError(Exception):
    """The service refused something, or gave something else than it had promised."""


@dataclass(frozen=True)
class Update:
    """News of a job."""

    job: dict[str, Any]
    trials: list[Trial]


class Service:
    """A client of the service."""

    def __init__(self, address: Address) -> None:
        self._http = httpx2.Client(
            base_url=f"{address.url}/v1",
            headers={"Authorization": f"Bearer {address.api_key}"},
            timeout=_SECONDS,
            trust_env=False,
        )

    def upload(self, path: Path) -> str:
        """Send a file and get the reference to it."""
        with path.open("rb") as file:
            answer = self._http.post("/uploads", files={"file": (path.name, file)})
        return str(_checked(answer).json()["uri"])

    def watch(self, job_id: str) -> Iterator[Update]:
        """The job again and again, each time with the new trials, until it has ended.

        Raises:
            ServiceError: it has not succeeded.
        """
        after, state = -1, ""
        while state not in _ENDED:
            # The job is read before its trace: once it has ended, no trial is missed.
            job = _checked(self._http.get(f"/jobs/{job_id}")).json()
            trials = list(self._trials(job_id, after))
            yield Update(job, trials)
            after, state = trials[-1].seq if trials else after, job["state"]
            time.sleep(_POLL_SECONDS)
        if state != "succeeded":
            raise ServiceError(f"the job has {state}: {(job['error'] or {}).get('message', job['status_reason'])}")

    @contextmanager
    def posted(self, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Post a job and get it as the service has accepted it; it is cancelled if the block ends with an error.

        Otherwise a demo that was interrupted would keep the worker from the next one.
        """
        accepted = _checked(self._http.post("/jobs", json=job)).json()
        try:
            yield accepted
        except BaseException:
            with suppress(httpx2.HTTPError):
                self._http.post(f"/jobs/{accepted['id']}/cancel")
            raise

    def trace_lines(self, job_id: str) -> str:
        """The whole trace as JSON Lines."""
        answer = self._http.get(f"/jobs/{job_id}/trace", headers={"Accept": "application/x-ndjson"})
        return _checked(answer).text

    def download(self, job_id: str, directory: Path) -> None:
        """Fetch every file of the job's result.

        Raises:
            ServiceError: what arrived is not what its digest says.
        """
        for artifact in _checked(self._http.get(f"/jobs/{job_id}/artifacts")).json()["data"]:
            content = _checked(self._http.get(f"/jobs/{job_id}/artifacts/{artifact['name']}")).content
            if hashlib.sha256(content).hexdigest() != artifact["sha256"]:
                raise ServiceError(f"{artifact['name']} arrived with another sha256 than {artifact['sha256']}")
            path = directory / artifact["name"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def _trials(self, job_id: str, after: int) -> Iterator[Trial]:
        has_more = True
        while has_more:
            answer = self._http.get(f"/jobs/{job_id}/trace", params={"after": after, "limit": _TRIALS_A_PAGE})
            page = _checked(answer).json()
            for record in page["data"]:
                yield Trial(**record)
            after, has_more = page["next"], page["has_more"]


def _checked(answer: httpx2.Response) -> httpx2.Response:
    if answer.is_error:
        raise ServiceError(f"{answer.request.method} {answer.request.url} gave {answer.status_code}: {answer.text}")
    return answer
