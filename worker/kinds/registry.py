"""Which function carries out which kind of job."""

from collections.abc import Callable, Mapping

from axformer.wire.kinds import JobKind
from worker.kinds import export, pruning
from worker.work import Work

KINDS: Mapping[JobKind, Callable[[Work], None]] = {JobKind.PASS: pruning.carry_out, JobKind.EXPORT: export.carry_out}
"""Each carries out a job whose process is open, to its end or to the end of its time slice."""
