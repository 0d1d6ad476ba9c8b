"""Where a run happens: where it keeps its state, whom it tells how far it is, and when it ends or waits."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from axformer.wire.steps import OnStep, ignore, never


class Turn(Protocol):
    """The turn of a run where several share a machine."""

    def is_over(self) -> bool:
        """Whether the run should wait as soon as nothing would be lost if its process ended."""

    def wait(self) -> None:
        """Wait for the next turn. An exception from it ends the run; another process then continues from the saved state."""


class Alone:
    """The turn of a run that shares its machine with no other: it never ends."""

    def is_over(self) -> bool:
        """Never."""
        return False

    def wait(self) -> None:
        """Return at once."""


@dataclass(frozen=True)
class Surroundings:
    """Where a run happens. Nothing here has any influence on its result."""

    directory: Path | None = None
    """For the state of the run, such as trainings and finished reports, for another process to go on; None to keep none."""
    on_step: OnStep = ignore
    """Takes reports of how far the run is, where that takes long."""
    check_cancelled: Callable[[], None] = never
    """Called at intervals; an exception from it ends the run."""
    turn: Turn = field(default_factory=Alone)
    """Asked where the state of the run is saved, as after a checkpoint of a training."""
    clock: Callable[[], float] = time.monotonic
    """Seconds since any fixed start, without those that the run waited for its turn."""
