"""Copy all content into another storage: ``python -m store.move s3://bucket/prefix``. It can be repeated."""

import argparse
import sys

from pydantic import ValidationError

from store.errors import StoreError
from store.settings import Settings
from store.storage.storage import Storage, open_storage

_KINDS = ("jobs", "uploads")
_ANY_AGE = -86_400.0
"""Seconds that content is at least old: a clock may be a day behind."""


def move(source: Storage, target: Storage) -> int:
    """Copy what the target does not have yet, and return the number of contents that were copied.

    Raises:
        ContentChangedError: content of the source is not what was stored.
        StorageUnavailableError: one of them does not answer, or refuses.
    """
    target.check()
    copied = 0
    for folder in (folder for kind in _KINDS for folder in source.folders(kind)):
        there = set(target.contents(folder, older_than=_ANY_AGE))
        for sha256 in source.contents(folder, older_than=_ANY_AGE):
            if sha256 not in there:
                target.put(folder, source.read(folder, sha256))
                copied += 1
    return copied


def main() -> int:
    """Run the command; return 1 if something went wrong."""
    parser = argparse.ArgumentParser(prog="python -m store.move", description="Copy all files into another storage.")
    parser.add_argument("target", help="a directory, or s3://bucket/prefix")
    given = parser.parse_args()
    try:
        settings = Settings.from_environment()
        other = Settings.model_validate({"storage": given.target})
        copied = move(open_storage(settings), open_storage(other))
    except (StoreError, ValidationError, OSError) as error:
        sys.stderr.write(f"axformer: {error}\n")
        return 1
    sys.stdout.write(f"{copied} files copied; start the service with AXFORMER_STORAGE={given.target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
