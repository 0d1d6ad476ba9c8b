"""The program behind the restrictions: serves one job over a pair of pipes. Its imports are done before there is a job."""

import os
import tempfile

from axformer.cli.quiet import silence_libraries
from worker.sandbox.lines import Lines
from worker.sandbox.work import serve


def main(reads: int, writes: int) -> None:
    """Serve one job.

    Args:
        reads: descriptor of the pipe that the worker speaks through.
        writes: descriptor of the pipe that it is answered through.
    """
    tempfile.tempdir = os.environ["TMPDIR"]
    silence_libraries()
    serve(Lines(reads, writes), _use_directory)


def _use_directory() -> None:
    """The working directory got another name when it was given to the job; libraries have noted the first one, too."""
    first, now = os.environ["HOME"], os.getcwd()  # noqa: PTH109
    for name, value in os.environ.items():
        if value == first or value.startswith(first + os.sep):
            os.environ[name] = now + value.removeprefix(first)
    tempfile.tempdir = now
