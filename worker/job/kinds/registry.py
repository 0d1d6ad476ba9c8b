"""The function that carries out each kind of job."""

from collections.abc import Callable, Mapping

from axformer.wire.kinds import JobKind
from worker.job.kinds import analysis, export, pruning
from worker.job.work import Work

KINDS: Mapping[JobKind, Callable[[Work], None]] = {
    JobKind.PASS: pruning.carry_out,
    JobKind.EXPORT: export.carry_out,
    JobKind.ANALYSIS: analysis.carry_out,
}
"""Each takes a job whose process is open and runs it to its end or to the end of its time slice."""
