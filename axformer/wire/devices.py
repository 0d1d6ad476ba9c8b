"""Kinds of hardware that jobs ask for and workers have, in the service's terms; PyTorch's names stay in the worker."""

from enum import StrEnum
from typing import Annotated

from axformer.wire.base import WordOf


class Device(StrEnum):
    """A kind of hardware. A job may ask for ``any``; a worker has one of the others."""

    ANY = "any"
    CPU = "cpu"
    GPU = "gpu"


DeviceWord = Annotated[Device | str, WordOf(Device)]
