"""Tuning of the server's Python process for many short requests instead of one long computation."""

import gc
import sys
import threading

_SWITCH_SECONDS = 0.0005
"""How long a thread may run while others wait. A request changes threads several times, and with the default of 5 ms it would
wait that long at each change while another thread is busy."""


def tune() -> None:
    """Tune the process, unless the server runs in a thread of another program."""
    if threading.current_thread() is not threading.main_thread():
        return
    sys.setswitchinterval(_SWITCH_SECONDS)
    # Present objects stay alive, and collecting over them repeatedly would delay every request.
    gc.collect()
    gc.freeze()
