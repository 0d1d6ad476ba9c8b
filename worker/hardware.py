"""Which kind of device this worker has, in the words that jobs ask for it."""

from axformer.wire.devices import Device
from store.settings import Settings
from worker.sandbox.sandboxes import Sandboxes

AUTO = "auto"


def with_device(settings: Settings, sandboxes: Sandboxes) -> Settings:
    """The settings with a device by its name; which one ``auto`` is, the process knows that has PyTorch.

    Raises:
        SandboxError: that process does not start.
    """
    if settings.device != AUTO:
        return settings
    return settings.model_copy(update={"device": sandboxes.prepare().make_ready().auto})


def device_kind(name: str) -> Device:
    """The kind of a device by PyTorch's name for it, which is not ``auto``."""
    if name == AUTO:
        raise ValueError("'auto' is not a device yet; with_device says which one it is here")
    return Device.CPU if name.startswith("cpu") else Device.GPU
