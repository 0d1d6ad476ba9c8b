"""A pass from beginning to end: load, check, search, cut, measure, write. The command line and the service both use this."""

import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axformer.config import PassConfig
from axformer.data.reading import read_rows, rows_of
from axformer.data.records import Records
from axformer.data.rows import Rows
from axformer.errors import ConfigError, PlanError, WrongTypeError
from axformer.evaluation.build import evaluators
from axformer.intake.checkpoint import Checkpoint, from_memory
from axformer.intake.dataset import DataSet, DataSource, prepare
from axformer.intake.parts import split_off
from axformer.methods.axformer.algorithm import plan_of, search
from axformer.methods.axformer.confirmation import CONFIRMING, measure_path
from axformer.methods.axformer.metric_limit import MetricLimit
from axformer.methods.axformer.ordering import inspection_order
from axformer.methods.axformer.orders import opening_of, pass_configs, passes_in
from axformer.methods.axformer.passes import Passes
from axformer.methods.axformer.targets import Estimate, Targets
from axformer.model.compact import compact
from axformer.model.number_format import cast
from axformer.model.operations import Operations
from axformer.model.parameters import ParameterCount
from axformer.opening import check_fits, notes_on, open_inputs
from axformer.plan.path import points_of
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from axformer.publishing import Decided, publish
from axformer.repair.settings import FinetuneSettings
from axformer.repair.training import Trained, Training
from axformer.reporting.look import Look, look_at


@dataclass(frozen=True)
class Result:
    """What :func:`prune` gives back."""

    plan: Plan
    trace: tuple[Trial, ...]
    model: Any
    """The compact model, in evaluation mode."""


class PruningRun:
    """One pass over one checkpoint: :meth:`open` it, :meth:`look`, iterate over :meth:`trials`, then :meth:`publish`.

    With ``order=search`` it is six passes, and what is published is the best of them.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        validation: DataSet,
        test: DataSet | None,
        config: PassConfig,
        shards: int = 1,
        training: Training | None = None,
    ) -> None:
        self._configs = pass_configs(config)
        for one in self._configs:
            inspection_order(checkpoint.dimensions, one)  # an order that does not fit is refused before any work
        check_fits(config, checkpoint, shards)
        self.config = config
        self.dimensions = checkpoint.dimensions
        self._checkpoint = checkpoint
        self._validation = validation
        self._deciding, self._confirming = split_off(validation, checkpoint, config)
        self._test = test
        self._shards = shards
        self._training = training
        self._trained: Trained | None = None
        model, architecture, lengths = checkpoint.model, checkpoint.architecture, validation.samples.lengths
        parameters = ParameterCount(model, architecture)
        operations = Operations(model, architecture, pooled=checkpoint.task.pooled, lengths=lengths)
        self._targets = Targets(
            *(config, Plan.full(self.dimensions), parameters.left, operations.left),
            *(parameters.encoder, operations.encoder),
        )
        self._passes = self._no_passes()

    @classmethod
    def open(
        cls,
        checkpoint: str | Path,
        validation: DataSource,
        *,
        test: DataSource | None = None,
        config: PassConfig | None = None,
        device: str = "cpu",
        shards: int = 1,
        train: DataSource | None = None,
        finetune: FinetuneSettings | None = None,
    ) -> "PruningRun":
        """Load a checkpoint and its data and check that they fit.

        Args:
            checkpoint: a local directory, or ``hf://organisation/name``.
            validation: the data that decides.
            test: held-out data, measured before and after, never used to decide.
            config: the knobs; the preset ``paper`` where none are given.
            device: where PyTorch computes, for example ``cpu`` or ``cuda``.
            shards: processes that share the validation samples; on CUDA they take the GPUs in turn.
            train: data that the finished model is trained on; null trains nothing.
            finetune: how; the defaults where nothing is said.

        Raises:
            InputError: something does not fit; the message says what and what to do.
        """
        config = config or PassConfig()
        inputs = open_inputs(checkpoint, validation, config, device, test=test, train=train, finetune=finetune)
        return cls(inputs.checkpoint, inputs.validation, inputs.test, config, shards, inputs.training)

    def look(self) -> Look:
        """See before the pass whether the untouched model is better than guessing on the rows that decide.

        Raises:
            PoorModelError: it is not, and ``accept_poor_model`` does not say to go on.
            CheckpointError: its loss is not a finite number.
        """
        seen = look_at(self._checkpoint, self._deciding)
        if not self.config.accept_poor_model:
            seen.check()
        return seen

    def trials(
        self, replay: Sequence[Trial] = (), clock: Callable[[], float] = time.monotonic, *, upto: int | None = None
    ) -> Generator[Trial, None, None]:
        """Run the pass, or with ``order=search`` one pass after another.

        What opens all passes of a search alike is evaluated in the first and replayed in the others, so that each has a whole
        trace of its own. With ``confirm`` or ``tolerance`` the path of each is measured when its last trial has been taken.

        Args:
            replay: the first trials of this same run where it goes on after a stop; they are not evaluated again.
            clock: seconds, from any start.
            upto: end after the trial of this number and keep what stands then, also with ``confirm``, which then only measures;
                null goes on to the end. Not with ``order=search``.

        Yields:
            Every trial, the replayed ones first. Each pass begins with its base.

        Raises:
            CheckpointError: the loss of the untouched model is not a finite number.
            ConfigError: ``upto`` is given for several passes.
            PlanError: the replayed trials are not of this run.
        """
        if upto is not None and len(self._configs) > 1:
            raise ConfigError(
                f"upto={upto}: a search of orders has several passes; name the order of the one that is meant"
            )
        given = passes_in(replay)
        if len(given) > len(self._configs):
            raise PlanError(f"the stored trace holds {len(given)} passes, but this run has {len(self._configs)}")
        passes = self._passes = self._no_passes()
        for place, config in enumerate(self._configs):
            opening = opening_of(passes.traces[0]) if passes.traces else []
            stored = given[place] if place < len(given) else []
            trace: list[Trial] = []
            with closing(self._run(config, max(stored, opening, key=len), clock)) as running:
                for trial in running:
                    if not trace:
                        passes.traces.append(trace)
                    trace.append(trial)
                    yield trial
                    if trial.seq == upto:
                        break
            self._measure_path(trace, chooses=upto is None)

    def _no_passes(self) -> Passes:
        return Passes(self._configs, self.dimensions, self._targets)

    def _measure_path(self, trace: Sequence[Trial], *, chooses: bool) -> None:
        """Measure the models on the path of a pass that is over and choose between them, where rows confirm; measure them on
        held-out data too where the pass has traded, since then the path is what was asked for."""
        sets = {name: data.samples for name, data in self._others.items() if data is not None}
        if sets and (self._confirming is not None or self.config.tolerance is not None):
            points = points_of(trace, self.dimensions, self.config)
            self._passes.measured.append(measure_path(self._checkpoint, points, sets, self.config, chooses=chooses))

    def _run(
        self, config: PassConfig, replay: Sequence[Trial], clock: Callable[[], float]
    ) -> Generator[Trial, None, None]:
        samples, limit = self._deciding.samples, None
        if config.within_points is not None and config.trades_within_points:
            limit = MetricLimit(self._checkpoint.task, samples, config.within_points)
        task = None if limit is None else limit.recording
        with evaluators(self._checkpoint, samples, config, self._shards, task) as (evaluator, screen):
            yield from search(
                evaluator,
                self.dimensions,
                config,
                parameters_left=self._targets.parameters,
                is_enough=self._targets.is_reached,
                screen=screen,
                metric_limit=limit,
                replay=replay,
                clock=clock,
            )

    @property
    def notes(self) -> list[str]:
        """What the user should know of his input, or of this machine, before the pass begins."""
        sets = {"validation": self._validation, "test": self._test}
        return notes_on(self._checkpoint, sets, self._confirming, self.config)

    @property
    def _others(self) -> dict[str, DataSet | None]:
        """What data there is beside the validation set, by its name in reports."""
        confirming = {} if self._confirming is None else {CONFIRMING: self._confirming}
        return {**confirming, "test": self._test}

    @property
    def trace(self) -> tuple[Trial, ...]:
        """The trials so far; of several passes those of the best."""
        return tuple(self._passes.trace)

    @property
    def plan(self) -> Plan:
        """What the trials so far leave of the model; with ``confirm``, and when they are over, up to the point that is kept."""
        return self._passes.plan

    @property
    def closing_note(self) -> str | None:
        """What the user should know of how the pass ended; null where it just came to its end."""
        return self._passes.note

    def estimate(self, trials: Sequence[Trial]) -> Estimate:
        """What speed the plan of the first trials of one pass promises."""
        return self._targets.estimate(plan_of(trials, self.dimensions, self.config))

    def compact_model(self) -> Any:
        """The physically smaller model that the trials so far lead to, in the number format of the checkpoint."""
        return cast(self._small_model(), self._checkpoint.dtype)

    def _small_model(self) -> Any:
        """The same in float32."""
        return compact(self._checkpoint.model, self._checkpoint.architecture, self.plan)

    def finetune(self, heed: Callable[[], None] = lambda: None) -> None:
        """Train the model that the finished pass leaves, where there is data for it. A call that was broken off begins anew.

        Args:
            heed: called before every step; what it raises ends the training.
        """
        if self._training is not None and self._trained is None:
            sets = {"validation": self._validation, **self._others}
            self._trained = self._training.carry_out(self._checkpoint, self._small_model(), sets, heed)

    def publish(self, directory: Path, forms: Collection[str] = ()) -> dict[str, Any]:
        """Cut, train where that is asked for and not done, measure, write and check. Nothing is left behind where any of it
        fails.

        Args:
            directory: where ``model/``, ``plan.json``, ``trace.jsonl``, ``report.json``, ``report.html``, ``README.md``,
                ``plan.svg`` and ``path.svg`` go.
            forms: of :data:`axformer.forms.kinds.KINDS`, made beside the compact model, each in a directory of its own.

        Returns:
            The content of ``report.json``.

        Raises:
            InputError: the directory exists and is not empty.
            ArtifactError: the compact form does not load in a fresh process, or computes something else.
        """
        self.finetune()
        trained, decided = self._trained, Decided(self._checkpoint, self._passes, self._targets, self.config)
        model = self.compact_model() if trained is None else trained.model
        return publish(*(decided, model, trained, self._validation, self._others), directory, forms).model_dump(
            mode="json"
        )


def prune(model: Any, tokenizer: Any, data: str | Path | Rows | Records, config: PassConfig | None = None) -> Result:
    """Run a pass over a model in memory, which is left as it is.

    Args:
        model: a fine-tuned transformers model of a supported family, with one of the heads that transformers has for it. It may
            be in half precision, or wrapped by ``torch.compile``, ``DataParallel`` or ``DistributedDataParallel``.
        tokenizer: its tokenizer.
        data: the validation set: a file, rows that were read, records (dicts, also of a generator), a dict of columns, or a
            table of pyarrow, pandas, polars or datasets, with the columns that the model's task reads (see
            :class:`axformer.data.columns.Columns`).
        config: the knobs; the preset ``paper`` where none are given.

    Raises:
        WrongTypeError: something is of no kind that is known; it is an InputError and a TypeError.
        InputError: something does not fit; the message says what and what to do.
    """
    config = PassConfig() if config is None else config
    if not isinstance(config, PassConfig):
        raise WrongTypeError(
            f"the config is of type {type(config).__name__}; make it with axformer.config.make_config('paper', {{...}})"
        )
    rows = read_rows(str(data)) if isinstance(data, str | Path) else data if isinstance(data, Rows) else rows_of(data)
    checkpoint = from_memory(model, tokenizer).for_rows(rows)
    run = PruningRun(checkpoint, prepare(rows, checkpoint, config), None, config)
    run.look()
    for _ in run.trials():
        pass
    return Result(plan=run.plan, trace=run.trace, model=run.compact_model())
