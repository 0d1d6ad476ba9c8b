"""Put results where their owners want them: a thread of the worker's main process, outside of every sandbox.

A job that succeeds is kept in the service's own storage first, so nothing is lost to a place that does not answer. Of several
workers one takes on a handover, and another one if that is lost.
"""

import random
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy.exc import SQLAlchemyError

from store.errors import VaultKeyError
from store.references import Scheme, parse_reference, shown
from store.repositories.files import list_artifacts
from store.repositories.handovers import Claimed, claim_handover, fail_handover, finish_handover, renew_handover
from store.session import Sessions, session_scope
from store.settings import Settings
from store.signing import open_vault
from store.storage.storage import open_storage
from store.tables.files import Artifact
from worker.base.packing import ARCHIVE_NAME
from worker.base.periodic import Periodic
from worker.handover.files import HandoverError, Outgoing, brought

_LOG = structlog.get_logger(__name__)
_BEATS = 4
"""How often a claim is renewed while it lasts."""
_JITTER = 0.25
"""Pauses are longer by up to this share, so that what failed together is not repeated together."""
_ID_BYTES = 6


def hand_over_next(sessions: Sessions, settings: Settings) -> bool:
    """Put the files of the job that has waited longest where they should go, once. False if nothing is due."""
    with session_scope(sessions) as session:
        claimed = claim_handover(session, settings.lease_seconds, most=1 + len(settings.handover_retry_seconds))
    if claimed is None:
        return False
    try:
        with _kept(sessions, claimed, settings.lease_seconds):
            files = _send(sessions, settings, claimed)
    except HandoverError as error:
        _note_failure(sessions, settings, claimed, error)
        return True
    with session_scope(sessions) as session:
        finish_handover(session, claimed, files=len(files), bytes=sum(file.bytes for file in files))
    _LOG.info("handed_over", job_id=claimed.job_id, target=shown(claimed.uri), files=len(files))
    return True


class Courier(Periodic):
    """A thread that looks for due handovers until it is stopped."""

    def __init__(self, sessions: Sessions, settings: Settings) -> None:
        super().__init__("courier", settings.announce_seconds)
        self._sessions = sessions
        self._settings = settings

    def once(self) -> None:
        """Hand over what is due."""
        while not self.is_over and hand_over_next(self._sessions, self._settings):
            pass


def _send(sessions: Sessions, settings: Settings, claimed: Claimed) -> list[Outgoing]:
    """Send all files but their archive, and return them.

    Raises:
        HandoverError: they cannot be put there.
    """
    try:
        token = open_vault(settings).unlock(claimed.token) if claimed.token else None
    except VaultKeyError as error:
        _LOG.error("token_unreadable", job_id=claimed.job_id, reason=str(error))
        token = None
    if token is None:
        raise HandoverError("no_token", "the token is not there any more; ask for it again, with the token")
    artifacts = _files_of(sessions, claimed.job_id)
    try:
        with brought(artifacts, open_storage(settings), settings.spool_dir) as files:
            _put(claimed.uri, token, files, settings)
            return files
    except HandoverError:
        raise
    except OSError as error:
        message = f"the worker cannot keep the files on its disk ({error.strerror}); it is tried again"
        raise HandoverError("disk_full", message, retryable=True) from error
    except Exception as error:
        error_id = secrets.token_hex(_ID_BYTES)
        _LOG.error("handover_error", error_id=error_id, job_id=claimed.job_id, exc_info=error)
        message = f"an error of the service stopped it; ask for it again, or give the operator the id {error_id}"
        raise HandoverError("internal_error", message) from error


def _put(uri: str, token: str, files: list[Outgoing], settings: Settings) -> None:
    # Imported only here: most jobs stay where they are.
    from worker.handover.places import put_into_bucket, put_into_repository

    reference = parse_reference(uri, is_checkpoint=True)
    if reference.scheme is Scheme.S3:
        put_into_bucket(reference, token, files, settings.object_store)
    else:
        put_into_repository(reference, token, files, settings.hub_endpoint)


def _files_of(sessions: Sessions, job_id: str) -> list[Artifact]:
    with session_scope(sessions) as session:
        files = [file for file in list_artifacts(session, job_id) if file.name != ARCHIVE_NAME]
    if not files:
        raise HandoverError("content_missing", "the job's files were removed by now; run the job again")
    return files


def _note_failure(sessions: Sessions, settings: Settings, claimed: Claimed, error: HandoverError) -> None:
    pauses = settings.handover_retry_seconds
    retry_in = None
    if error.retryable and claimed.attempts <= len(pauses):
        retry_in = pauses[claimed.attempts - 1] * random.uniform(1, 1 + _JITTER)  # noqa: S311 - hides nothing
    with session_scope(sessions) as session:
        fail_handover(session, claimed, error.as_dict(), retry_in=retry_in)
    _LOG.warning("not_handed_over", job_id=claimed.job_id, code=error.code, reason=str(error), retry_in=retry_in)


@contextmanager
def _kept(sessions: Sessions, claimed: Claimed, seconds: float) -> Iterator[None]:
    """Renew a claim while the block runs."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(seconds / _BEATS):
            try:
                with session_scope(sessions) as session:
                    if not renew_handover(session, claimed, seconds):
                        return
            except SQLAlchemyError as error:
                _LOG.warning("handover_not_renewed", job_id=claimed.job_id, error=type(error).__name__)

    thread = threading.Thread(target=beat, name=f"handover-{claimed.job_id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
