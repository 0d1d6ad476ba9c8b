"""A pass from beginning to end: load, check, search, cut, measure, write. The command line and the service both use this."""

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from axformer.config import PassConfig, RunConfig
from axformer.data.reading import read_rows, rows_of
from axformer.data.records import Records
from axformer.data.rows import Rows
from axformer.errors import ConfigError, WrongTypeError
from axformer.evaluation.untouched import Untouched
from axformer.intake.checkpoint import Checkpoint, from_memory
from axformer.intake.dataset import DataSet, DataSource, prepare
from axformer.intake.parts import split_off
from axformer.intake.rebuilt import check_rebuilt
from axformer.intake.shared_rows import shared_with
from axformer.methods.base import Ground, plan_of, targets_of
from axformer.methods.confirmation import CONFIRMING, measure_path
from axformer.methods.outline import outline_of
from axformer.methods.passes import Passes
from axformer.methods.registry import method_of
from axformer.methods.targets import SpeedEstimate
from axformer.model.number_format import cast
from axformer.new_head import Headed
from axformer.opening import CALIBRATION, Inputs, check_fits, notes_on, open_inputs, with_trained_head
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from axformer.publishing import Decided, Made, publish
from axformer.repair.base import Repair, Repaired
from axformer.repair.local import LocalFits
from axformer.repair.polish import polish_training
from axformer.repair.refit import can_refit
from axformer.repair.settings import FinetuneSettings
from axformer.repair.training import Training
from axformer.reporting.look import Look, check_training_rows, look_at
from axformer.surroundings import Surroundings
from axformer.wire.heads import NewHead
from axformer.wire.steps import OnStep, ignore


@dataclass(frozen=True)
class Result:
    """The result of :func:`prune`."""

    plan: Plan
    trace: tuple[Trial, ...]
    model: Any
    """The compact model, in evaluation mode."""


class PruningRun:
    """A pass over a checkpoint: :meth:`open` it, :meth:`look`, iterate over :meth:`trials`, then :meth:`publish`.

    With ``order=search`` there are six passes, of which the best is published.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        validation: DataSet,
        test: DataSet | None,
        config: RunConfig,
        repair: Repair | None = None,
        calibration: DataSet | None = None,
        names: Mapping[str, str] | None = None,
        headed: Headed | None = None,
    ) -> None:
        self._method, self._configs = method_of(config), outline_of(config).passes(config)
        self._method.check(config, checkpoint.dimensions)
        check_fits(config, checkpoint, repair)
        self.config = config
        self.dimensions = checkpoint.dimensions
        self._names = dict(names or {})
        self._headed = headed
        self._checkpoint = checkpoint
        self._validation = validation
        self.deciding, self._confirming = split_off(validation, checkpoint, config)
        self._test = test
        self._repair = repair
        self.calibration = calibration
        self._repaired: Repaired | None = None
        self._targets = targets_of(checkpoint, config, validation.samples)
        self._ground = self._ground_of(calibration or self.deciding)
        self.passes = self._no_passes()
        """The passes with their trials so far."""

    def _ground_of(self, calibrating: DataSet) -> Ground:
        """What the method works with."""
        checkpoint, config, deciding = self._checkpoint, self.config, self.deciding
        refits = recovery = None
        if config.is_refitted and can_refit(checkpoint.model, checkpoint.architecture):
            refits = self._method.fits(checkpoint.model, checkpoint.architecture, calibrating.samples)
        training = polish_training(calibrating, checkpoint, config) if config.polish_epochs else self._repair
        if isinstance(training, Training):
            recovery = self._method.extras.recovery(checkpoint, training, deciding, config, refits)
        fitting = refits if isinstance(refits, LocalFits) else None
        return Ground(
            *(checkpoint, deciding.samples, config, self._targets),
            calibration=calibrating.samples,
            untouched=Untouched(checkpoint, deciding.samples, config, fitting),
            refits=refits,
            recovery=recovery,
        )

    @classmethod
    def open(
        cls,
        checkpoint: str | Path,
        validation: DataSource,
        *,
        test: DataSource | None = None,
        config: RunConfig | None = None,
        device: str = "cpu",
        train: DataSource | None = None,
        finetune: FinetuneSettings | None = None,
        calibrate: DataSource | None = None,
        names: Mapping[str, str] | None = None,
        head: NewHead | None = None,
        surroundings: Surroundings | None = None,
    ) -> "PruningRun":
        """Load a checkpoint and its data, and check that they fit together. A base model is then trained with its new head.

        Args:
            checkpoint: a local directory, or ``hf://organisation/name``.
            validation: the validation data, on which the pass decides.
            test: held-out data, measured before and after the pass, and never used to decide.
            config: the knobs; None for the preset ``paper``.
            device: the device that PyTorch computes on, for example ``cpu`` or ``cuda``.
            train: training data for the finished model; None for no training.
            finetune: the training settings; None for the defaults.
            calibrate: calibration data, like the validation data; None for the deciding rows. It needs no labels, and labels in
                it are not used.
            names: the inputs' names for people, by ``checkpoint``, ``validation``, ``test``, ``calibrate`` and ``train``; None
                for their own.
            head: the new head that a base model gets; it needs ``train``. None for a fine-tuned checkpoint.
            surroundings: where the training of a new head happens; None to keep no state of it.

        Raises:
            InputError: something does not fit; the message says what is wrong and what to do.
        """
        config = config or PassConfig()
        if calibrate is not None:
            config = config.calibrated()
        inputs = open_inputs(
            *(checkpoint, validation, config, device),
            test=test,
            train=train,
            finetune=finetune,
            calibrate=calibrate,
            head=head,
        )
        run = cls._of(inputs, config, names)
        if head is None:
            return run
        # Made once before, so that what does not fit is refused before the training.
        return cls._of(with_trained_head(inputs, head, config, surroundings or Surroundings()), config, names)

    @classmethod
    def _of(cls, inputs: Inputs, config: RunConfig, names: Mapping[str, str] | None) -> "PruningRun":
        return cls(
            *(inputs.checkpoint, inputs.validation, inputs.test, config),
            *(inputs.repair, inputs.calibration, inputs.names if names is None else names, inputs.headed),
        )

    def look(self) -> Look:
        """Check before the pass whether the untouched model is better than guessing on the deciding rows, and whether training
        rows count the classes as it does.

        Raises:
            PoorModelError: the model does not fit the data, and ``accept_poor_model`` is not set.
            CheckpointError: its loss is not finite.
        """
        seen = look_at(self._checkpoint, self.deciding, self._ground.untouched.predictions(keep=True))
        if not self.config.accept_poor_model:
            seen.check()
            if isinstance(self._repair, Training) and self._repair.settings.needs_labels and self._headed is None:
                check_training_rows(self._checkpoint, self._repair.rows, self.config)
        return seen

    def trials(
        self,
        replay: Sequence[Trial] = (),
        surroundings: Surroundings | None = None,
        *,
        upto: int | None = None,
    ) -> Generator[Trial, None, None]:
        """Run the pass, or with ``order=search`` one pass after another.

        With ``confirm`` or ``tolerance``, the path of each pass is measured after the caller has taken the last trial.

        Args:
            replay: the first trials of the same run if it continues after a stop; they are not evaluated again.
            surroundings: where it happens.
            upto: stop after the trial with this number and keep the plan at that point; ``confirm`` then only measures. None
                continues to the end. Not with ``order=search``.

        Yields:
            Every trial, the replayed ones first. Each pass begins with its base trial.

        Raises:
            CheckpointError: the loss of the untouched model is not finite.
            ConfigError: ``upto`` is given for several passes.
            PlanError: the replayed trials do not belong to this run.
        """
        if upto is not None and len(self._configs) > 1:
            raise ConfigError(
                f"upto={upto}: a search of orders has several passes; name the order of the one that is meant"
            )
        if upto is not None:
            self._targets = replace(self._targets, is_chosen=True)
        self.passes = self._no_passes()
        self._ground = replace(self._ground, surroundings=surroundings or Surroundings())
        with closing(self._method.trials(self._ground, replay)) as running:
            for trial in running:
                self.passes.add(trial)
                yield trial
                if trial.seq == upto:
                    break
        self._measure_paths(self._ground.surroundings.on_step, chooses=upto is None)

    def _no_passes(self) -> Passes:
        return Passes(self._configs, self.dimensions, self._targets)

    def _measure_paths(self, on_step: OnStep, *, chooses: bool) -> None:
        """Measure the models on the path of each pass, and choose between them if there are confirming rows.

        If the path is the purpose of the run, as in a trade, its models are measured on held-out data too.
        """
        sets = {name: data.samples for name, data in self._others.items() if data is not None}
        if sets and (self._confirming is not None or self.config.measures_path):
            for points in self.passes.points():
                measured = measure_path(
                    *(self._checkpoint, points, sets, self.config),
                    model_of=self._ground.fitted_model_of,
                    chooses=chooses,
                    on_step=on_step,
                )
                self.passes.measured.append(measured)

    @property
    def notes(self) -> list[str]:
        """Notes for the user before the pass, on the input or on this machine."""
        sets = {"validation": self._validation, "test": self._test, CALIBRATION: self.calibration}
        fitted = self.calibration or self.deciding
        return [
            *notes_on(self._checkpoint, sets, self._confirming, self.config, fitted, self._repair),
            *self._method.extras.notes(self.config, is_trained=self._repair is not None),
            *(f"{name} data: {doubt}" for name, doubt in self._doubts.items()),
        ]

    @cached_property
    def _doubts(self) -> dict[str, str]:
        """Why figures on the confirming rows or on held-out data do not hold for new rows, by their names in reports."""
        made_with = {"the rows that decide": self.deciding.samples.encoded}
        if self.calibration is not None:
            made_with["the calibration rows"] = self.calibration.samples.encoded
        if isinstance(self._repair, Training):
            made_with["the training rows"] = self._repair.encoded
        measures = {name: data.samples.encoded for name, data in self._others.items() if data is not None}
        doubts = {name: shared_with(data, made_with) for name, data in measures.items()}
        return {name: doubt for name, doubt in doubts.items() if doubt is not None}

    @property
    def _others(self) -> dict[str, DataSet | None]:
        """The confirming rows and the held-out data, by their names in reports."""
        confirming = {} if self._confirming is None else {CONFIRMING: self._confirming}
        return {**confirming, "test": self._test}

    @property
    def trace(self) -> tuple[Trial, ...]:
        """The trials so far; with several passes, those of the best one."""
        return tuple(self.passes.trace)

    @property
    def plan(self) -> Plan:
        """The plan of the trials so far; with ``confirm``, after the last trial, the plan of the kept point."""
        return self.passes.plan

    @property
    def closing_note(self) -> str | None:
        """A note for the user on how the pass ended; None if it simply reached its end."""
        return self.passes.note

    def estimate(self, trials: Sequence[Trial]) -> SpeedEstimate:
        """Estimate the speed of the plan after the first trials of a pass, counted from shapes."""
        return self._targets.estimate(plan_of(trials, self.dimensions, self.config))

    def compact_model(self) -> Any:
        """The physically smaller model of the trials so far, in the number format of the checkpoint."""
        return cast(self._small_model(), self._checkpoint.dtype)

    def _small_model(self) -> Any:
        """The compact model in float32."""
        return self._ground.model_of(self.plan)

    def repair(self, surroundings: Surroundings | None = None) -> None:
        """Repair the model of the finished run if a repair was given, or if the run trains every model.

        Args:
            surroundings: where it happens. With a directory, a repair that was interrupted continues, also in another process;
                without, it starts again.
        """
        recovery = self._ground.recovery
        if self._repaired is not None:
            return
        sets, around = {"validation": self._validation, **self._others}, surroundings or Surroundings()
        if recovery is not None:
            if self.plan != Plan.full(self.dimensions):
                self._repaired = recovery.repaired(self.plan, sets, around)
        elif self._repair is not None:
            self._repaired = self._repair.carry_out(
                *(self._checkpoint, self._small_model(), self.plan, sets, self.deciding, around)
            )

    def publish(self, directory: Path, forms: Collection[str] = (), on_step: OnStep = ignore) -> dict[str, Any]:
        """Cut, measure, write and check the model, after the repair if there is one. If anything fails, nothing is left behind.

        Args:
            directory: the directory for ``model/``, ``plan.json``, ``trace.jsonl``, ``report.json``, ``report.html``,
                ``README.md``, ``plan.svg`` and ``path.svg``.
            forms: names from :data:`axformer.forms.kinds.KINDS`, made in addition to the compact model, each in its own
                directory.
            on_step: takes reports of how far the work is.

        Returns:
            The content of ``report.json``.

        Raises:
            InputError: the directory exists and is not empty.
            ArtifactError: the compact form does not load in a fresh process, or its outputs differ.
        """
        self.repair()
        repaired = self._repaired
        decided = Decided(
            self._checkpoint, self.passes, self._targets, self.config, self._names, self._headed, self._doubts
        )
        model = self.compact_model() if repaired is None else repaired.model
        fits = None if self._ground.refits is None else self._ground.refits.of(self.plan)
        files = self._method.extras.files(self._ground, self.trace)
        made = Made(model, repaired, fits or None, self.calibration, files)
        is_known = self.deciding is self._validation and self._checkpoint.dtype is torch.float32
        seen = self._ground.untouched.predictions(keep=False) if is_known else None
        report = publish(decided, made, self._validation, self._others, directory, forms, seen, on_step)
        return report.model_dump(mode="json")


def prune(model: Any, tokenizer: Any, data: str | Path | Rows | Records, config: RunConfig | None = None) -> Result:
    """Run a pass over a model in memory, which is not changed.

    Args:
        model: a fine-tuned transformers model of a supported family, with one of the heads that transformers has for it. It may
            be in half precision, or wrapped by ``torch.compile``, ``DataParallel`` or ``DistributedDataParallel``.
        tokenizer: the model's tokenizer.
        data: the validation set: a file, rows that were read, records (dicts, possibly from a generator), a dict of columns, or
            a table of pyarrow, pandas, polars or datasets, with the columns that the model's task reads (see
            :class:`axformer.data.columns.Columns`).
        config: the knobs; None for the preset ``paper``.

    Raises:
        WrongTypeError: an argument is of an unsupported type; the error is an InputError and a TypeError.
        InputError: something does not fit; the message says what is wrong and what to do.
    """
    config = PassConfig() if config is None else config
    if not isinstance(config, RunConfig):
        raise WrongTypeError(
            f"the config is of type {type(config).__name__}; make it with axformer.config.make_config('paper', {{...}})"
        )
    rows = read_rows(str(data)) if isinstance(data, str | Path) else data if isinstance(data, Rows) else rows_of(data)
    checkpoint = from_memory(model, tokenizer).for_rows(rows)
    deciding = prepare(rows, checkpoint, config)
    check_rebuilt(checkpoint, deciding)
    run = PruningRun(checkpoint, deciding, None, config)
    run.look()
    for _ in run.trials():
        pass
    return Result(plan=run.plan, trace=run.trace, model=run.compact_model())
