"""The restricted program: it serves one job over a pair of pipes. All imports happen before the job arrives."""

import os
import tempfile

from axformer.cli.libraries import silence_libraries
from worker.sandbox.lines import PipeEnd
from worker.sandbox.work import serve


def main(reads: int, writes: int) -> None:
    """Serve one job.

    Args:
        reads: descriptor of the pipe that the worker writes to.
        writes: descriptor of the pipe that the worker reads from.
    """
    tempfile.tempdir = os.environ["TMPDIR"]
    silence_libraries()
    serve(PipeEnd(reads, writes), _use_directory)


def _use_directory() -> None:
    """Update paths after the working directory was renamed for the job; libraries have read the old name."""
    first, now = os.environ["HOME"], os.getcwd()  # noqa: PTH109
    for name, value in os.environ.items():
        if value == first or value.startswith(first + os.sep):
            os.environ[name] = now + value.removeprefix(first)
    tempfile.tempdir = now
