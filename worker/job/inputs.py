"""Fetch the inputs of a job to local files."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from store.tables.jobs import Job
from worker.fetching.errors import FetchError
from worker.fetching.fetcher import Fetched, Fetcher

_MODELS = ("checkpoint", "against")


class InputsChangedError(Exception):
    """The inputs of a resumed job differ from those that its trace began with."""


@dataclass(frozen=True)
class Inputs:
    """Local files of a job by the field of the job, with their digests and original names."""

    paths: Mapping[str, Path]
    digests: Mapping[str, str]
    names: Mapping[str, str]
    """The owner's names for them."""


def fetch_inputs(job: Job, fetcher: Fetcher, work: Path) -> Inputs:
    """Fetch everything that a job refers to.

    Args:
        job: the job whose references are fetched.
        fetcher: downloads content to this machine.
        work: directory for the files.

    Raises:
        FetchError: something cannot be fetched; its ``param`` names the field of the job.
        InputsChangedError: the job has a trace that began on other content.
    """
    fetched: dict[str, Fetched] = {}
    for part, reference in job.sources.items():
        fetch = fetcher.checkpoint if part in _MODELS else fetcher.data
        with _blaming(part):
            fetched[part] = fetch(reference["uri"], work / part, reference.get("sha256"))
    digests = {part: content.sha256 for part, content in fetched.items()}
    begun_with = (job.progress or {}).get("inputs", digests)
    changed = [name for name, digest in digests.items() if begun_with.get(name, digest) != digest]
    if changed:
        raise InputsChangedError(
            f"the content of {' and '.join(changed)} has changed since the job began; retry it to begin again"
        )
    return Inputs(
        paths={part: content.path for part, content in fetched.items()},
        digests=digests,
        names={part: content.name for part, content in fetched.items()},
    )


@contextmanager
def _blaming(part: str) -> Iterator[None]:
    try:
        yield
    except FetchError as error:
        error.param = part
        raise
