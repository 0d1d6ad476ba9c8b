"""Makes sure that a job can fit into this worker's memory before anything of it is loaded."""

from axformer.intake.footprint import Footprint
from store.settings import Settings
from worker.failure import Failure, RefusedInputError
from worker.sandbox.messages import Memory, MemoryEstimate
from worker.warm import WarmSlot

TOO_BIG = "too_big"
"""Code of the error of a job that no worker of this size can run."""
_GB = 1e9


def make_room(estimate: MemoryEstimate, settings: Settings, warm: WarmSlot) -> None:
    """Give a job the memory that it will use: refuse one that can never fit, and free what is kept of another.

    Raises:
        RefusedInputError: it needs more than this worker has, with both figures.
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
