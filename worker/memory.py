"""Makes sure that a job can fit into this worker's memory before anything of it is loaded."""

from pathlib import Path

from axformer.config import PassConfig
from axformer.devices import batch_tokens_of
from axformer.evaluation.budget import free_bytes, total_bytes
from axformer.footprint import Footprint, Sizes, at_ease, least
from axformer.sizes import read_sizes
from store.settings import Settings
from worker.failure import Failure, RefusedInputError
from worker.inputs import Inputs
from worker.warm import WarmSlot

TOO_BIG = "too_big"
"""Code of the error of a job that no worker of this size can run."""
_GB = 1e9


def make_room(inputs: Inputs, config: PassConfig, device: str, settings: Settings, warm: WarmSlot) -> None:
    """Give a job the memory that it will use: refuse one that can never fit, and free what is kept of another.

    Raises:
        RefusedInputError: it needs more than this worker has, with both figures.
        InputError: the checkpoint cannot be used.
    """
    sizes, data_bytes = read_sizes(inputs.checkpoint), _data_bytes(inputs)
    on_gpu, batch_tokens = device.startswith("cuda"), batch_tokens_of(device)
    need = least(sizes, data_bytes, config, batch_tokens, on_gpu=on_gpu)
    has = Footprint(settings.memory_bytes or total_bytes("cpu"), total_bytes(device) if on_gpu else 0)
    _check_fits("memory", need.host_bytes, has.host_bytes, sizes, data_bytes)
    _check_fits("GPU memory", need.device_bytes, has.device_bytes, sizes, data_bytes)
    wish = at_ease(sizes, data_bytes, config, batch_tokens, on_gpu=on_gpu)
    warm.make_room(wish, Footprint(free_bytes("cpu"), free_bytes(device) if on_gpu else 0))


def _check_fits(what: str, needed: int, available: int, sizes: Sizes, data_bytes: int) -> None:
    if needed <= available:
        return
    message = (
        f"the job needs at least {needed / _GB:.2f} GB of {what}, and this worker has {available / _GB:.2f} GB: the model has "
        f"{sizes.parameters:,} parameters, the data {data_bytes:,} bytes; use a smaller model, less data or a smaller "
        "batch_tokens, or ask the operator for a worker with more"
    )
    raise RefusedInputError(Failure(TOO_BIG, message, "checkpoint"))


def _data_bytes(inputs: Inputs) -> int:
    sources = [source for source in (inputs.validation, inputs.test, inputs.train) if source is not None]
    return sum(Path(source.path).stat().st_size for source in sources)
