"""The kind of device that this worker has, in the terms that jobs use."""

from axformer.wire.devices import Device
from store.settings import Settings
from worker.sandbox.sandboxes import Sandboxes

AUTO = "auto"


def with_device(settings: Settings, sandboxes: Sandboxes) -> Settings:
    """Replace ``auto`` in the settings by a device; a sandbox resolves it, since this process does not import PyTorch.

    Raises:
        SandboxError: the sandbox does not start.
    """
    if settings.device != AUTO:
        return settings
    return settings.model_copy(update={"device": sandboxes.prepare().make_ready().auto})


def device_kind(name: str) -> Device:
    """The kind of a device, from its PyTorch name; ``auto`` is not allowed."""
    if name == AUTO:
        raise ValueError("'auto' is not a device yet; with_device says which one it is here")
    return Device.CPU if name.startswith("cpu") else Device.GPU
