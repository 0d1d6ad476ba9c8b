"""How Python runs the server's process: for many short requests instead of one long computation."""

import gc
import sys
import threading

_SWITCH_SECONDS = 0.0005
"""How long a thread may compute while others want to. A request changes threads several times, and with the usual 5 ms it
would wait that long at each change while another is busy."""


def tune() -> None:
    """Do so, unless the server is a guest in a thread of somebody else's process."""
    if threading.current_thread() is not threading.main_thread():
        return
    sys.setswitchinterval(_SWITCH_SECONDS)
    # What was made until now stays, and to look through all of it again and again would hold every request up.
    gc.collect()
    gc.freeze()
