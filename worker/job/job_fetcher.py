"""The fetcher of one job, with the job's own hub token and the uploads of its team."""

from dataclasses import replace

from store.repositories.jobs import hub_token_of
from store.repositories.uploads import find_upload
from store.session import session_scope
from store.tables.jobs import Job
from store.tables.uploads import Upload
from store.vault import open_vault
from worker.base.context import WorkerContext
from worker.fetching.cache import ContentCache
from worker.fetching.fetcher import Fetcher
from worker.fetching.policy import policy_of
from worker.fetching.sources import open_source
from worker.fetching.transfer import Transfer
from worker.sandbox.lines import CheckStop


def fetcher_of(context: WorkerContext, job: Job, check_stop: CheckStop) -> Fetcher:
    """Make the fetcher of a job; it calls ``check_stop`` on the way, which raises to stop it."""
    policy = policy_of(context.settings)
    with session_scope(context.sessions) as session:
        locked = hub_token_of(session, job.id)
    if locked is not None:
        policy = replace(policy, hub_token=open_vault(context.settings).unlock(locked))

    def find(upload_id: str) -> Upload | None:
        with session_scope(context.sessions) as session:
            return find_upload(session, upload_id, job.team_id)

    return Fetcher(
        Transfer(ContentCache(context.settings.cache_dir), policy, check_stop),
        lambda reference: open_source(reference, policy, find, context.storage),
    )
