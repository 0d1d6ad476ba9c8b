"""Compares database and storage, and checks the audit log: ``python -m store.check [--quick]``, now and then.

Says which rows have no content, which contents have no row, and which contents are no longer what was stored. Changes nothing.
Contents without a row may belong to a newer backup of the database, and a job that is being packaged has them for a while.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from contextlib import suppress

from sqlalchemy import select

from store.errors import ContentChangedError, StorageError
from store.repositories.audit import check_chain
from store.repositories.revision import database_identity
from store.session import Sessions, open_sessions, session_scope
from store.settings import Settings
from store.storage.storage import Storage, job_folder, open_storage, upload_folder
from store.tables.files import Artifact, Upload

Content = tuple[str, str]
"""Folder and SHA-256."""


def differences(sessions: Sessions, storage: Storage, *, quick: bool = False) -> Iterator[tuple[str, str]]:
    """What does not fit: ``missing``, ``changed`` or ``without_row``, each with its place in the storage.

    Args:
        quick: whether to leave out the hashes, for which all content is read.
    """
    # Listed before the rows are read, since a row follows its content.
    listed = {content for kind in ("jobs", "uploads") for content in _listed(storage, kind)}
    with session_scope(sessions) as session:
        jobs = session.execute(select(Artifact.job_id, Artifact.sha256))
        named: set[Content] = {(job_folder(job_id), sha256) for job_id, sha256 in jobs}
        named |= {(upload_folder(id_), sha256) for id_, sha256 in session.execute(select(Upload.id, Upload.sha256))}
    for folder, sha256 in sorted(named | listed):
        place = f"{folder}/{sha256}"
        if (folder, sha256) not in named:
            yield "without_row", place
        elif not _is_there(storage, folder, sha256, listed=(folder, sha256) in listed):
            yield "missing", place
        elif not quick and not _is_whole(storage, folder, sha256):
            yield "changed", place


def _listed(storage: Storage, kind: str) -> Iterator[Content]:
    for folder in storage.folders(kind):
        with suppress(OSError):  # what is no directory holds nothing of ours
            yield from ((folder, sha256) for sha256 in storage.contents(folder, older_than=float("-inf")))


def _is_there(storage: Storage, folder: str, sha256: str, *, listed: bool) -> bool:
    """Whether content exists; what was not listed may have been written since."""
    if listed:
        return True
    try:
        storage.read(folder, sha256)
    except (StorageError, OSError):
        return False
    return True


def _is_whole(storage: Storage, folder: str, sha256: str) -> bool:
    try:
        for _ in storage.read(folder, sha256):
            pass
    except (ContentChangedError, FileNotFoundError):
        return False
    return True


def _head(text: str) -> str:
    if re.fullmatch("[1-9][0-9]{0,18}:[0-9a-f]{64}", text) is None:
        raise argparse.ArgumentTypeError(f"'{text}' is no head, which is a number, a colon and a SHA-256")
    return text


def main() -> int:
    """Print what does not fit, and how much of it; the exit code is 1 if rows have lost their content or the audit log is not
    whole."""
    parser = argparse.ArgumentParser(
        prog="python -m store.check", description="Compare database and storage, and check the audit log."
    )
    parser.add_argument("--quick", action="store_true", help="leave out the hashes, for which all content is read")
    parser.add_argument(
        "--head", type=_head, help="an audit_head of before, which must still be in the audit log's chain"
    )
    given = parser.parse_args()
    settings = Settings.from_environment()
    counts = dict.fromkeys(("missing", "changed", "without_row"), 0)
    with open_sessions(settings) as sessions:
        storage = open_storage(settings)
        for what, place in differences(sessions, storage, quick=given.quick):
            counts[what] += 1
            sys.stdout.write(f"{what} {place}\n")
        with session_scope(sessions) as session:
            database = database_identity(session)
            audit = check_chain(session, given.head)
        owner = (storage.owner() or database).partition("\n")[0]
    chain = {"audit_chain": audit.broken or "whole", "audit_waiting": audit.waiting, "audit_head": audit.head}
    told = {**chain, **counts, "storage_of_this_database": "yes" if owner == database else "no"}
    sys.stdout.write("".join(f"{name}: {value}\n" for name, value in told.items()))
    return 1 if counts["missing"] or counts["changed"] or audit.broken else 0


if __name__ == "__main__":
    sys.exit(main())
