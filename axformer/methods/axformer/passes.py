"""The passes of a run, what they have come to, and which of them is kept: one pass, or six where orders are searched."""

from collections.abc import Sequence

from axformer.config import PassConfig
from axformer.methods.axformer.confirmation import MeasuredPath, note_of
from axformer.methods.axformer.orders import Rank, best_of, final_loss
from axformer.methods.axformer.path_report import path_report
from axformer.methods.axformer.targets import Targets
from axformer.plan.elements import Dimensions
from axformer.plan.path import Point, points_of
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from axformer.wire.report import OrderResult, PathPoint


class Passes:
    """The passes so far. Whoever runs them adds to :attr:`traces` and :attr:`measured`; all else follows from these."""

    def __init__(self, configs: Sequence[PassConfig], dimensions: Dimensions, targets: Targets) -> None:
        self._configs = configs
        self._dimensions = dimensions
        self._targets = targets
        self.traces: list[list[Trial]] = []
        """The trials of each pass that has begun, in the order of the configurations."""
        self.measured: list[MeasuredPath] = []
        """The measured path of each pass that is over, where there is data for it and it was asked for."""

    @property
    def config(self) -> PassConfig:
        """The knobs of the pass that is kept."""
        return self._configs[self._best()]

    @property
    def trace(self) -> Sequence[Trial]:
        """The trials of the pass that is kept."""
        return self.traces[self._best()] if self.traces else []

    @property
    def plan(self) -> Plan:
        """What the pass that is kept leaves of the model; when it is over, with ``confirm``, up to the point that is kept."""
        return self._end(self._best()).plan if self.traces else Plan.full(self._dimensions)

    @property
    def note(self) -> str | None:
        """What the user should know of how the run ended; null where it just came to its end."""
        notes = [self._targets.note(self.plan)]
        if self.measured:
            notes.append(note_of(self.measured[self._best()], self.config))
        return "; ".join(note for note in notes if note is not None) or None

    @property
    def path(self) -> list[PathPoint]:
        """The path of the pass that is kept, for the report."""
        place = self._best()
        if place < len(self.measured):
            one = self.measured[place]
            return path_report(one.points, one.figures, one.kept, self._targets)
        points = self._points(place)
        return path_report(points, [{} for _ in points], len(points) - 1, self._targets)

    @property
    def orders(self) -> list[OrderResult] | None:
        """What each order that was run led to, where there are several."""
        if len(self._configs) == 1:
            return None
        return [
            OrderResult(
                order=config.order.value,
                loss=self._loss(place),
                trials=len(trace),
                seconds=trace[-1].seconds,
                parameters=self._targets.parameters(self._end(place).plan),
                encoder_parameters=self._targets.encoder_parameters(self._end(place).plan),
                kept=place == self._best(),
            )
            for place, (config, trace) in enumerate(zip(self._configs, self.traces, strict=False))
        ]

    def _best(self) -> int:
        """Place of the pass that is kept."""
        return best_of([self._rank(place) for place in range(len(self.traces))])

    def _rank(self, place: int) -> Rank:
        return self._targets.rank(self._end(place).plan, self._loss(place))

    def _loss(self, place: int) -> float:
        """By what a pass is compared with others."""
        confirmed = self.measured[place].loss if place < len(self.measured) else None
        return final_loss(self.traces[place]) if confirmed is None else confirmed

    def _end(self, place: int) -> Point:
        """Where a pass stands: at its last acceptance, or when it is measured at the point that is kept."""
        return self.measured[place].point if place < len(self.measured) else self._points(place)[-1]

    def _points(self, place: int) -> list[Point]:
        return points_of(self.traces[place], self._dimensions, self._configs[place])
