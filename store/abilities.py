"""The abilities of a worker, so that it only gets jobs that it can do."""

from dataclasses import dataclass

from axformer.wire.devices import Device


@dataclass(frozen=True)
class Abilities:
    """A worker's abilities; the defaults allow every job."""

    device: Device = Device.ANY
    """The worker's device; ``any`` takes every job."""
    knobs: frozenset[str] | None = None
    """The knobs that the worker knows; a job with others is left to a newer worker. None means all."""

    machine: str | None = None
    """The worker's machine; trainings that another one can go on with are left to that one for a while. None takes them too."""


ALL = Abilities()
