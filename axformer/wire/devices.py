"""Kinds of hardware that jobs ask for and workers have, in the service's terms; PyTorch's names stay in the worker."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from axformer.wire.base import Schema, WordOf


class Device(StrEnum):
    """A kind of hardware. A job may ask for ``any``; a worker has one of the others."""

    ANY = "any"
    CPU = "cpu"
    GPU = "gpu"


DeviceWord = Annotated[Device | str, WordOf(Device)]


class MemoryNeed(Schema):
    """Bytes that a worker's device must have for a job: of its GPU, or of its machine if it works on the processor."""

    asked: int | None = None
    """What its owner asked for; the larger of this and the found figure counts."""
    cpu: int | None = None
    """What a worker without a GPU needs, found by a look at the job's files; null before the first."""
    gpu: int | None = None
    """The same of the smallest GPU that it fits."""


def needed_memory(device: Device, need: Mapping[str, int] | None) -> int:
    """The bytes that a worker with this device must have; 0 while nothing is known.

    Args:
        need: the fields of a :class:`MemoryNeed` that are known.
    """
    known = need or {}
    return max(known.get("asked", 0), known.get(device.value, 0))


def can_take(device: Device, memory: int | None, wanted: Device, need: Mapping[str, int] | None) -> bool:
    """Whether a worker may take a job that asks for a device and so much memory; what is unknown of a worker hinders nothing.

    Args:
        memory: the bytes that the worker's device has.
        need: as for :func:`needed_memory`.
    """
    has_device = Device.ANY in (device, wanted) or device is wanted
    return has_device and (memory is None or needed_memory(device, need) <= memory)
