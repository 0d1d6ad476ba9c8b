"""The commit of the running package. Light to import: workers look it up for their jobs, which cannot read the checkout."""

import os
import subprocess
from pathlib import Path

COMMIT = "AXFORMER_COMMIT"
"""Environment variable that names the commit if there is no readable checkout."""


def commit() -> str | None:
    """The commit from the environment, or of the checkout that holds this package; None if neither is known."""
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
