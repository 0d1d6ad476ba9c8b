"""The work on a job in a thread of the test, over the same lines, without restrictions.

What it costs to start a process is saved where the restrictions are not what is tested. The confined process has tests of its
own in ``sandbox/``, and real workers always have it.
"""

import json
import os
import threading
from contextlib import suppress
from pathlib import Path

from store.settings import Settings
from worker.sandbox.lines import Lines
from worker.sandbox.work import serve


class Unconfined:
    """See :class:`worker.sandbox.process.Process`. It ends at its next look at the worker."""

    def __init__(self, directory: Path, settings: Settings) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self.lines = Lines(ours_in, ours_out)
        os.write(theirs_out, json.dumps({"type": "restrictions", "refused": {}}).encode() + b"\n")
        self._theirs = Lines(theirs_in, theirs_out)
        self._thread = threading.Thread(target=self._serve, name="unconfined")
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> str:
        self.lines.close()
        self._thread.join()
        return "as it was told to"

    def _serve(self) -> None:
        try:
            serve(self._theirs)
        finally:
            with suppress(OSError):
                self._theirs.close()
