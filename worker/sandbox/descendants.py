"""The process tree below a process."""

from collections import defaultdict
from contextlib import suppress

import psutil


def descendants(pid: int) -> list[psutil.Process]:
    """The living descendants of a process.

    ``psutil.Process.children`` leaves out children that seem older than their parent. It computes both ages from the boot
    time, which changes when the clock is set in between, and then misses young processes.
    """
    children: defaultdict[int, list[psutil.Process]] = defaultdict(list)
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess):
            children[process.ppid()].append(process)
    tree = children[pid]
    for process in tree:  # the list grows during the loop
        tree.extend(children[process.pid])
    return tree
