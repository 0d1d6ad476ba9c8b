"""Fetch the inputs of a job to local files."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from store.repositories.files import find_upload
from store.repositories.jobs import hub_token_of
from store.session import session_scope
from store.signing import open_vault
from store.tables.files import Upload
from store.tables.jobs import Job
from store.tables.teams import Team
from worker.base.context import WorkerContext
from worker.fetching.cache import ContentCache
from worker.fetching.errors import FetchError
from worker.fetching.fetcher import Fetched, Fetcher
from worker.fetching.policy import policy_of
from worker.fetching.sources import open_source
from worker.fetching.transfer import Transfer
from worker.sandbox.lines import CheckStop

_MODELS = ("checkpoint", "against")


class InputsChangedError(Exception):
    """The inputs of a resumed job differ from those that its trace began with."""


@dataclass(frozen=True)
class JobInputs:
    """Local files of a job, as its process names them, by the field of the job, with their digests and original names."""

    paths: Mapping[str, Path]
    digests: Mapping[str, str]
    names: Mapping[str, str]
    """The owner's names for them."""


def fetch_inputs(job: Job, fetcher: Fetcher, work: Path) -> JobInputs:
    """Fetch everything that a job refers to.

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
    return JobInputs(
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


def fetcher_of(context: WorkerContext, job: Job, check_stop: CheckStop) -> Fetcher:
    """Make the fetcher of a job; it calls ``check_stop`` on the way, which raises to stop it."""
    with session_scope(context.sessions) as session:
        locked, team = hub_token_of(session, job.id), session.get_one(Team, job.team_id)
    policy = policy_of(context.settings, team.grants)
    if locked is not None:  # the caller's own
        token = open_vault(context.settings).unlock(locked)
        policy = replace(policy, hub_token=token, grants=policy.grants | {"hf://*"})

    def find(upload_id: str) -> Upload | None:
        with session_scope(context.sessions) as session:
            return find_upload(session, upload_id, job.team_id)

    return Fetcher(
        Transfer(ContentCache(context.settings.cache_dir), policy, check_stop),
        lambda reference: open_source(reference, policy, find, context.storage),
    )
