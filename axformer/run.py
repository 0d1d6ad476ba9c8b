"""A pass from beginning to end: load, check, search, cut, measure, write. The command line and the service both use this."""

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from axformer.config import RunConfig
from axformer.data.columns import OWN_ANSWERS
from axformer.errors import ConfigError
from axformer.evaluation.untouched import Untouched
from axformer.forms.form import Form, NotMade
from axformer.forms.onnx import check_packages
from axformer.intake.dataset import DataSet, drawn_to_calibrate
from axformer.intake.parts import check_deciding, shared_with, split_off
from axformer.intake.rebuilt import check_own_format
from axformer.methods.base import Ground, made_by, targets_of
from axformer.methods.confirmation import CONFIRMING, UNLABELLED, Choosing, measure_path
from axformer.methods.decisions import Decisions
from axformer.model.number_format import cast
from axformer.notes import CALIBRATION, notes_on
from axformer.opening import Inputs, by_rows, check_fits, open_inputs, polish_by_texts, with_trained_head
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from axformer.publishing import Decided, Made, publish
from axformer.repair.refit import can_refit
from axformer.repair.training import Repaired, polish_training
from axformer.reporting.look import Look, check_training_rows, look_at
from axformer.reporting.measure import BothMeasured, doubted, is_useless, measure_both
from axformer.scores.importance import ScoreUnits
from axformer.scores.labelling import Labels
from axformer.scores.measured import Measured, measure
from axformer.surroundings import Surroundings
from axformer.tasks.embedding import SentenceEmbedding
from axformer.wire.run import Run, SettledRun
from axformer.wire.steps import OnStep, ignore


class PruningRun:
    """A pass over a checkpoint: :meth:`open` it, :meth:`look`, iterate over :meth:`trials`, then :meth:`publish`."""

    def __init__(self, inputs: Inputs, config: RunConfig, asked: Run | None = None) -> None:
        """Begin a run over inputs that are loaded.

        Args:
            asked: what was asked for, for the files of the result.
        """
        checkpoint, validation, calibration = inputs.checkpoint, inputs.validation, inputs.calibration
        self._method = made_by(type(config))
        self._method.check(config, checkpoint)
        check_fits(config, checkpoint, inputs.repair)
        self.dimensions = checkpoint.dimensions
        self._inputs = inputs
        self._asked = asked
        self._checkpoint = checkpoint
        self._validation = validation
        self._unlabelled = inputs.unlabelled
        by_partners = isinstance(checkpoint.task, SentenceEmbedding) and checkpoint.task.by_partners
        is_labelled = validation.samples.encoded.labels_as != OWN_ANSWERS
        self.deciding, self._confirming = (
            split_off(validation, checkpoint, config) if is_labelled else (validation, None)
        )
        if by_partners:  # which stand in the place of labels
            self._confirming, self._unlabelled = inputs.unlabelled, None
        check_deciding(self.deciding)
        config, polished = polish_by_texts(config, inputs)
        config, pointed = by_rows(config, self._confirming, self._unlabelled)
        self.config, self._on_knobs = config, [*polished, *pointed]
        self._test = inputs.test
        self._repair = inputs.repair
        self.calibration = calibration
        self._repaired: Repaired | None = None
        self._targets = targets_of(checkpoint, config, validation.samples)
        self._calibrating = calibration or self.deciding
        if calibration is None and config.needs.calibration:
            self._calibrating = drawn_to_calibrate(self.deciding, checkpoint, config)
        self._ground = self._ground_of(self._calibrating, inputs.calibrating(config) or self.deciding)
        self.decisions = self._no_decisions()
        """The trials so far, and what follows from them."""
        self.labels: Labels = {}
        """What people said of unlabelled rows, by the ids in an answer sheet; set before :meth:`trials`."""
        self.points: float | None = None
        """The points that these labels are to certify; None for those of the knobs."""
        self.before: Sequence[Form | NotMade] | None = None
        """The untouched model in ONNX, if a caller has made that already; set before :meth:`publish`."""
        self._both: dict[Plan, BothMeasured] = {}
        """The untouched model and that of a plan, as the report measures them."""

    def _ground_of(self, calibrating: DataSet, texts: DataSet) -> Ground:
        """What the method works with: data that weights are fitted to, and texts that a polish trains on."""
        checkpoint, config, deciding = self._checkpoint, self.config, self.deciding
        refits = None
        if config.needs.fitting and can_refit(checkpoint.model, checkpoint.architecture):
            refits = self._method.fits(checkpoint.model, checkpoint.architecture, calibrating.samples)
        training = polish_training(texts, checkpoint, config) if config.needs.polish else self._repair
        ground = Ground(
            *(checkpoint, deciding.samples, config, self._targets),
            calibration=calibrating.samples,
            untouched=Untouched(checkpoint, deciding.samples, config, None if refits is None else refits.in_trials),
            refits=refits,
        )
        if training is None:
            return ground
        return replace(ground, recovery=self._method.recovery(ground, training, deciding))

    @classmethod
    def open(
        cls,
        run: Run | SettledRun,
        *,
        device: str = "cpu",
        paths: Mapping[str, str] | None = None,
        names: Mapping[str, str] | None = None,
        surroundings: Surroundings | None = None,
    ) -> "PruningRun":
        """Load a checkpoint and its data, and check that they fit together. A base model is then trained with its new head.

        Args:
            run: what to do.
            device: the device that PyTorch computes on, for example ``cpu`` or ``cuda``.
            paths: where checkpoint and data lie on this machine, by the fields of the run; None for where its references say:
                local files and directories, or a hub.
            names: the inputs' names for people, by the fields of the run; None for their own.
            surroundings: where the training of a new head happens; None to keep no state of it.

        Raises:
            InputError: something does not fit; the message says what is wrong and what to do.
        """
        settled = run.settled() if isinstance(run, Run) else run
        if "forms" in settled.run.model_fields_set:
            check_packages(settled.run.forms)
        config, head = settled.knobs, settled.run.head
        inputs = open_inputs(settled.located(paths or {}), device)
        if names is not None:
            inputs = replace(inputs, names=names)
        opened = cls(inputs, config, settled.run)
        if head is None:
            return opened
        # Made once before, so that what does not fit is refused before the training.
        headed = with_trained_head(inputs, head, config, surroundings or Surroundings())
        return cls(headed, config, settled.run)

    def score_by(self, score: ScoreUnits) -> None:
        """Let a function score heads and neurons.

        Raises:
            ConfigError: the method asks for no scores.
        """
        if not self.config.about.takes_score:
            raise ConfigError(
                f"score: method={self.config.method} takes no function that scores units; use method=rank"
            )
        self._ground = replace(self._ground, score=score)

    def look(self) -> Look:
        """Check before the pass whether the untouched model is better than guessing on the deciding rows, and whether training
        rows count the classes as it does.

        Raises:
            PoorModelError: the model does not fit the data, and ``accept_poor_model`` is not set.
            CheckpointError: its loss is not finite, or its logits are not in the number format of its files.
        """
        check_own_format(self._checkpoint, self.deciding)
        seen = look_at(self._checkpoint, self.deciding, self._ground.untouched.measured(keep=True))
        if not self.config.accept_poor_model:
            seen.check()
            if self._repair is not None and self._repair.settings.needs_labels and self._inputs.headed is None:
                check_training_rows(self._checkpoint, self._repair.rows, self.config)
        return seen

    def trials(
        self,
        replay: Sequence[Trial] = (),
        surroundings: Surroundings | None = None,
        *,
        upto: int | None = None,
        chooses: bool = False,
    ) -> Generator[Trial, None, None]:
        """Run the pass.

        With ``confirm`` or ``tolerance``, the path is measured after the caller has taken the last trial.

        Args:
            replay: the first trials of the same run if it continues after a stop; they are not evaluated again.
            surroundings: where it happens.
            upto: stop after the trial with this number and keep the plan at that point; ``confirm`` then only measures, and
                :attr:`labels` certify. None continues to the end.
            chooses: whether :attr:`labels` choose among the models up to there.

        Yields:
            Every trial, the replayed ones first, and of these first the base trial.

        Raises:
            CheckpointError: the loss of the untouched model is not finite.
            PlanError: the replayed trials do not belong to this run.
        """
        if upto is not None and not self.labels:
            self._targets = replace(self._targets, is_chosen=True)
        self.decisions, self._repaired = self._no_decisions(), None
        later = (self._repair, self._confirming, self._unlabelled)  # what judges or changes models afterwards
        is_judged = upto is None and all(one is None for one in later)
        self._ground = replace(
            self._ground,
            surroundings=surroundings or Surroundings(),
            is_of_use=self._is_of_use if is_judged else None,
        )
        with closing(self._method.trials(self._ground, replay)) as running:
            for trial in running:
                self.decisions.trace.append(trial)
                yield trial
                if trial.seq == upto:
                    break
        self._measure_path(self._ground.surroundings.on_step, chooses=chooses or upto is None)

    def _is_of_use(self, plan: Plan, measured: Measured) -> bool:
        """Whether the report will not call the model of a plan useless; see :attr:`axformer.methods.base.Ground.is_of_use`."""
        checkpoint, decides = self._checkpoint, self._on_deciding
        model = cast(self._ground.model_of(plan), checkpoint.dtype)
        both = doubted(measure_both(checkpoint, model, self._validation, self._others, decides), self._doubts)
        own = measured if decides else measure(model, checkpoint.task, self._validation.samples)
        self._both, sets = {plan: both}, {"validation": self._validation, **self._others}
        at_most = None if self._asked is None else self._asked.at_most
        return not is_useless(checkpoint, self.decisions, sets, both, own, at_most)

    @property
    def _on_deciding(self) -> Measured | None:
        """The untouched model on the validation data, where that is what decided, in the number format of the report."""
        is_known = self.deciding is self._validation and self._checkpoint.dtype is torch.float32
        return self._ground.untouched.measured(keep=False) if is_known else None

    def _no_decisions(self) -> Decisions:
        return Decisions(self.config, self.dimensions, self._targets)

    def _measure_path(self, on_step: OnStep, *, chooses: bool) -> None:
        """Measure the models on the path, and choose between them if there are confirming rows.

        If the path is the purpose of the run, as in a trade, its models are measured on held-out data too.
        """
        sets = {name: data for name, data in self._others.items() if data is not None}
        if sets and (self._confirming is not None or self._unlabelled is not None or self.config.measures_path):
            self.decisions.measured = measure_path(
                *(self._checkpoint, self.decisions.points, sets, self.config),
                model_of=self._ground.fitted_model_of,
                choosing=Choosing(chooses, self._doubts.get(CONFIRMING), self._allowed, self.labels),
                on_step=on_step,
            )

    @property
    def _allowed(self) -> float | None:
        """The points that are to be certified; None where nothing is."""
        points = self.points or self.config.within_points
        return None if points is None else float(points)

    @property
    def notes(self) -> list[str]:
        """Notes for the user before the pass, on the input or on this machine."""
        sets = {"validation": self._validation, "test": self._test, CALIBRATION: self.calibration}
        fitted, deciding = (one.samples.encoded.notes for one in (self._calibrating, self.deciding))
        drawn = [note for note in fitted if self.calibration is None and note not in deciding]
        return [
            *notes_on(
                *(self._checkpoint, sets, self._confirming, self.config, self._calibrating, self._repair),
                unlabelled=self._unlabelled,
                deciding=self.deciding,
            ),
            *self._inputs.notes,
            *(f"validation data: {note}" for note in drawn),
            *self._method.notes(self.config, self.deciding.samples, is_trained=self._repair is not None),
            *(f"{name} data: {doubt}" for name, doubt in self._doubts.items()),
            *self._on_knobs,
        ]

    @cached_property
    def _doubts(self) -> dict[str, str]:
        """Why figures on the confirming rows or on held-out data do not hold for new rows, by their names in reports."""
        made_with = {"the rows that decide": self.deciding.samples.encoded}
        calibrating = self._inputs.calibrating(self.config)
        if calibrating is not None:
            made_with["the calibration rows"] = calibrating.samples.encoded
        if self._repair is not None:
            made_with["the training rows"] = self._repair.encoded
        measures = {name: data.samples.encoded for name, data in self._others.items() if data is not None}
        doubts = {name: shared_with(data, made_with) for name, data in measures.items()}
        return {name: doubt for name, doubt in doubts.items() if doubt is not None}

    @property
    def _others(self) -> dict[str, DataSet | None]:
        """The confirming rows, those without labels, and the held-out data, by their names in reports."""
        confirm = {CONFIRMING: self._confirming, UNLABELLED: self._unlabelled}
        return {**{name: data for name, data in confirm.items() if data is not None}, "test": self._test}

    @property
    def trace(self) -> tuple[Trial, ...]:
        """The trials so far."""
        return tuple(self.decisions.trace)

    @property
    def plan(self) -> Plan:
        """The plan of the trials so far; with ``confirm``, after the last trial, the plan of the kept point."""
        return self.decisions.plan

    @property
    def closing_note(self) -> str | None:
        """A note for the user on how the pass ended; None if it simply reached its end."""
        return self.decisions.note

    def compact_model(self) -> Any:
        """The physically smaller model of the trials so far, in the number format of the checkpoint."""
        return cast(self._small_model(), self._checkpoint.dtype)

    def model(self) -> Any:
        """The finished model: the repaired one where there was a repair."""
        return self.compact_model() if self._repaired is None else self._repaired.model

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
            ArtifactError: no form passed its check in a fresh process.
        """
        self.repair()
        repaired = self._repaired
        decided = Decided(
            *(self._checkpoint, self.decisions, self.config, self._inputs.names, self._inputs.headed, self._doubts),
            notes=self.notes,
            run=self._asked,
            allowed=self._allowed,
            labels=self.labels,
        )
        model = self.model()
        fits = None if self._ground.refits is None else self._ground.refits.of(self.plan)
        files = self._method.files(self._ground, self.trace)
        both = self._both.get(self.plan)  # only where nothing is trained
        made = Made(model, repaired, fits or None, self.calibration, files, self._ground.model_of, self.before, both)
        report = publish(decided, made, self._validation, self._others, directory, forms, self._on_deciding, on_step)
        return report.model_dump(mode="json")
