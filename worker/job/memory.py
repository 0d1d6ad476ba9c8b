"""Check that a job fits into this worker's memory before anything is loaded."""

from axformer.intake.footprint import Footprint
from store.settings import Settings
from worker.job.failure import Failure, RefusedInputError
from worker.job.warm import WarmSlot
from worker.sandbox.messages import Memory, MemoryEstimate

TOO_BIG = "too_big"
"""Error code of a job that is too large for this worker."""
_GB = 1e9


def make_room(estimate: MemoryEstimate, settings: Settings, warm: WarmSlot) -> None:
    """Free memory for a job by giving up a kept pass, and refuse a job that can never fit.

    Raises:
        RefusedInputError: the job needs more than this worker has; the message has both figures.
    """
    need, total = estimate.least, estimate.total
    _check_fits("memory", need.host_bytes, settings.memory_bytes or total.host_bytes, estimate)
    _check_fits("GPU memory", need.device_bytes, total.device_bytes, estimate)
    warm.make_room(_footprint(estimate.at_ease), _footprint(estimate.free))


def _check_fits(what: str, needed: int, available: int, estimate: MemoryEstimate) -> None:
    if needed <= available:
        return
    message = (
        f"the job needs at least {needed / _GB:.2f} GB of {what}, and this worker has {available / _GB:.2f} GB: the model has "
        f"{estimate.parameters:,} parameters, the data {estimate.data_bytes:,} bytes; use a smaller model, less data or a "
        "smaller batch_tokens, or ask the operator for a worker with more"
    )
    raise RefusedInputError(Failure(TOO_BIG, message, "checkpoint"))


def _footprint(memory: Memory) -> Footprint:
    return Footprint(memory.host_bytes, memory.device_bytes)
