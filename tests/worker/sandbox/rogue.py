"""A job's process that has fallen into the hands of whoever made its inputs: it says and leaves whatever a test wants."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from axformer.plan.trial import Phase, Trial, Verdict
from store.settings import Settings
from worker.sandbox.lines import PipeEnd
from worker.sandbox.messages import (
    FROM_WORKER,
    Begin,
    GoAhead,
    JobOrder,
    Memory,
    MemoryEstimate,
    Message,
    Opened,
    PlanSpeed,
    Ready,
    Restrictions,
    Shape,
)

LAYERS, HEADS, WIDE = 2, 2, 8
NOTHING = Memory(host_bytes=0, device_bytes=0)
PLENTY = Memory(host_bytes=2**40, device_bytes=2**40)
SPEED = PlanSpeed(operations=1, estimated_speedup=1.0)


@dataclass
class Voice:
    """What a rogue speaks with."""

    lines: PipeEnd
    result: Path = field(init=False)
    """Where the result is to be; known with the order."""

    def say(self, message: Message) -> None:
        self.lines.send(message.line())

    def hear(self, kind: type[Message]) -> None:
        while not isinstance(message := FROM_WORKER.validate_json(self.lines.receive()), kind):
            pass
        if isinstance(message, JobOrder):
            self.result = Path(message.output)

    def behave_until_the_order(self) -> None:
        self.say(Restrictions(refused={"root": "it is a thread"}))
        self.say(Ready(auto="cpu"))
        self.hear(JobOrder)

    def behave_until_the_search(self) -> None:
        self.behave_until_the_order()
        sizes = {"parameters": 1, "data_bytes": 1, "largest": "checkpoint"}
        self.say(MemoryEstimate(least=NOTHING, at_ease=NOTHING, total=PLENTY, free=PLENTY, fits=NOTHING, **sizes))
        self.hear(GoAhead)
        shape = Shape(layers=LAYERS, heads=HEADS, hidden_size=4, intermediate_size=WIDE)
        self.say(Opened(notes=(), first_look=None, shape=shape))
        self.hear(Begin)


Act = Callable[[Voice], None]


class Rogue:
    """See :class:`worker.sandbox.process.Process`."""

    def __init__(self, act: Act) -> None:
        self._act = act

    def __call__(self, directory: Path, settings: Settings) -> "Rogue":
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self.lines = PipeEnd(ours_in, ours_out)
        self._voice = Voice(PipeEnd(theirs_in, theirs_out))
        self._thread = threading.Thread(target=self._speak)
        self._thread.start()
        return self

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> str:
        self.lines.close()
        self._thread.join()
        return "as it was told to"

    def _speak(self) -> None:
        try:
            with suppress(BrokenPipeError, EOFError):
                self._act(self._voice)
        finally:
            self._voice.lines.close()


def trial(seq: int, /, **changes: object) -> Trial:
    """The base, or a trial of a head that is rejected, with some fields changed."""
    is_base = seq == 0
    plain: dict[str, object] = {
        "seq": seq,
        "phase": Phase.BASE if is_base else Phase.HEAD,
        "element": None if is_base else "layer.1.attention.head.0",
        "loss": 1.0,
        "loss_is_bound": False,
        "helped": None if is_base else 0,
        "samples": 4,
        "total": 4,
        "min_loss": 1.0,
        "verdict": Verdict.BASE if is_base else Verdict.REJECT,
        "precision": "float32",
        "parameters": 0,
        "seconds": 0.1,
    }
    return Trial.model_validate(plain | changes)
