"""Which commit of this package runs. Light to import: a worker asks it for its jobs, which cannot see the checkout."""

import os
import subprocess
from pathlib import Path

COMMIT = "AXFORMER_COMMIT"
"""Variable of the environment that names the commit where there is no checkout to ask, or none that may be read."""


def commit() -> str | None:
    """The commit that the environment names, else that of the checkout in which this package lies; null where nobody knows."""
    if named := os.environ.get(COMMIT):
        return named
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - arguments of our own
    except OSError:
        return None
    return found.stdout.strip() or None
