"""The program inside the walls: ``python -m worker.sandbox.child READS WRITES``, two numbers of open pipes.

It imports all that loading and pruning take before it has a job, so that a job need not wait for that.
"""

import os
import sys
import tempfile

from worker.sandbox.lines import Lines


def main() -> None:
    """Serve one job."""
    from axformer.cli.quiet import silence_libraries
    from worker.sandbox.work import serve

    silence_libraries()
    serve(Lines(int(sys.argv[1]), int(sys.argv[2])), _use_directory)


def _use_directory() -> None:
    """The working directory got another name when it was given to the job; libraries have noted the first one, too."""
    first, now = os.environ["HOME"], os.getcwd()  # noqa: PTH109
    for name, value in os.environ.items():
        if value == first or value.startswith(first + os.sep):
            os.environ[name] = now + value.removeprefix(first)
    tempfile.tempdir = now


if __name__ == "__main__":
    main()
