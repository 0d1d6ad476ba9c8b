"""Which hardware a job asks for and a worker has, in the service's words; PyTorch's own names stay with the worker."""

from enum import StrEnum
from typing import Annotated

from axformer.wire.base import WordOf


class Device(StrEnum):
    """A kind of hardware. A job may ask for ``any``; a worker has one of the others."""

    ANY = "any"
    CPU = "cpu"
    GPU = "gpu"


DeviceWord = Annotated[Device | str, WordOf(Device)]
