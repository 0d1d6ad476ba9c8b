"""What an analysis is made of, and what of it is asked for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from axformer.analysis.advice import Given
from axformer.analysis.labels import can_probe
from axformer.analysis.study import ReportBounds
from axformer.config import RunConfig
from axformer.config.nearest import or_all
from axformer.errors import ConfigError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.intake.encoder import Encoder
from axformer.wire.analysis import ReportName

REPORTS: tuple[str, ...] = get_args(ReportName)


@dataclass(frozen=True)
class WantedReports:
    """What is asked for."""

    reports: Sequence[str] | None = None
    """Names of :data:`REPORTS`; None for all that the inputs allow."""
    rows: int | None = None
    """Most rows of each data set; None for the default."""
    seed: int = 0

    @property
    def bounds(self) -> ReportBounds:
        """The bounds of the work."""
        return ReportBounds() if self.rows is None else ReportBounds(rows=self.rows)

    def check(self) -> None:
        """Check the names and the number.

        Raises:
            ConfigError: a report is unknown, or the number is not positive.
        """
        for name in self.reports or ():
            if name not in REPORTS:
                raise ConfigError(f"--report '{name}' is not a report; {or_all(name, REPORTS)}")
        if self.rows is not None and self.rows < 2:
            raise ConfigError(f"--rows {self.rows}: an analysis needs at least 2 rows")


@dataclass(frozen=True)
class AnalysisInputs:
    """A checkpoint with the rows of an analysis."""

    checkpoint: Checkpoint
    data: DataSet
    train: DataSet | None
    against: Checkpoint | Encoder | None
    config: RunConfig
    given: Given
    names: Mapping[str, str] = field(default_factory=dict)


def reports_of(inputs: AnalysisInputs, wanted: WantedReports) -> tuple[list[str], list[str]]:
    """The reports to make, and notes on those that cannot be made.

    Raises:
        ConfigError: one that is asked for cannot be made.
    """
    lacking = dict(_lacking(inputs))
    if wanted.reports is not None:
        for name in wanted.reports:
            if name in lacking:
                raise ConfigError(f"--report {name}: {lacking[name]}")
        return [name for name in REPORTS if name in wanted.reports], []
    return (
        [name for name in REPORTS if name not in lacking],
        [f"no report '{name}': {reason}" for name, reason in lacking.items()],
    )


def _lacking(inputs: AnalysisInputs) -> Iterator[tuple[str, str]]:
    """The reports that cannot be made, with the reasons."""
    task = inputs.checkpoint.task
    if not can_probe(task):
        yield (
            "features",
            f"{task.name.replace('_', ' ')} has no labels that a linear classifier reads from its positions",
        )
    elif inputs.train is None:
        yield "features", "a classifier learns from training rows; give --train"
    if inputs.against is None:
        yield "drift", "it compares two models; give --against"
