"""The tree of processes below one of them."""

from collections import defaultdict
from contextlib import suppress

import psutil


def descendants(pid: int) -> list[psutil.Process]:
    """What a process has started, and what that has started, as far as it lives.

    ``psutil.Process.children`` leaves out those that seem older than their parent. It computes both ages from the
    time of the start of the machine, which moves when the clock is set between the two, and then misses young ones.
    """
    children: defaultdict[int, list[psutil.Process]] = defaultdict(list)
    for one in psutil.process_iter():
        with suppress(psutil.NoSuchProcess):
            children[one.ppid()].append(one)
    found = children[pid]
    for one in found:  # grows as it is walked
        found.extend(children[one.pid])
    return found
