"""Which kind of device this worker has, in the words that jobs ask for it."""

from store.devices import Device

AUTO = "auto"


def device_kind(name: str) -> Device:
    """The kind of a device by PyTorch's name for it; ``auto`` needs PyTorch, which is imported for it alone."""
    if name == AUTO:
        from axformer.devices import resolve_device

        name = resolve_device(name)
    return Device.CPU if name.startswith("cpu") else Device.GPU
