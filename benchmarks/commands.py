"""Run the programs of a long experiment one after another, each with its own log, so that one failure stops no other."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def run_logged(arguments: Sequence[str], log: Path) -> bool:
    """Run this Python with ``arguments`` and add what it prints to ``log``; gives whether it succeeded."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as output:
        print("$", "python", *arguments, file=output, flush=True)
        done = subprocess.run([sys.executable, *arguments], stdout=output, stderr=subprocess.STDOUT, check=False)
    return done.returncode == 0
