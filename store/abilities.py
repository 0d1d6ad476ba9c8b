"""What a worker can take on, so that it is never given a job that it cannot do."""

from dataclasses import dataclass

from axformer.wire.devices import Device


@dataclass(frozen=True)
class Abilities:
    """A worker's abilities; by default no job is beyond them."""

    device: Device = Device.ANY
    """What it computes on; ``any`` takes every job."""
    knobs: frozenset[str] | None = None
    """The knobs that it knows. A job with others is left to a newer worker; None knows all."""


ALL = Abilities()
