"""Opens the inputs of a pass: loads a checkpoint and its data, and checks that they fit together."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch

from axformer.config import RunConfig
from axformer.config.common import BY_ROWS
from axformer.config.compress import USUAL_POLISH, CompressConfig
from axformer.config.goals import GoalName, parse_goal
from axformer.data.columns import ANSWERS, OWN_ANSWERS, Columns, DataSource
from axformer.data.encoding import Encoded
from axformer.data.reading import read_rows
from axformer.data.rows import Rows
from axformer.devices import low_precision
from axformer.errors import ConfigError, DataError
from axformer.intake.checkpoint import Checkpoint, load_checkpoint
from axformer.intake.dataset import (
    DataSet,
    drawn_to_calibrate,
    encode_like,
    prepare,
    prepare_inputs,
    prepare_like,
)
from axformer.intake.likeness import figures_of, unlike
from axformer.intake.parts import split_off
from axformer.new_head import Headed, loaded_again, train_head
from axformer.notes import UNLABELLED_ROWS, confirming_rows
from axformer.pulse import beat
from axformer.repair.freezing import check_freezes
from axformer.repair.teacher import for_teacher
from axformer.repair.training import Training, check_trainable
from axformer.scores.own_answers import check_can_answer, split, with_own_answers, without_those_of
from axformer.scores.planning import POINT, USUAL_RATE, smallest_margin
from axformer.scores.task_tests import takes_unlabelled
from axformer.surroundings import Surroundings
from axformer.tasks.causal_lm import CausalLanguageModelling
from axformer.tasks.embedding import SentenceEmbedding, are_pairs
from axformer.tasks.masked_lm import MaskedLanguageModelling
from axformer.tasks.question_answering import QuestionAnswering
from axformer.wire.finetuning import FinetuneSettings
from axformer.wire.heads import NewHead
from axformer.wire.metrics import EMBEDDING
from axformer.wire.references import DataRef, shown_name
from axformer.wire.run import WITHOUT_LABELS, SettledRun

_MANY_TEXTS, _MOST_TAUGHT = 4_000, 40_000
"""Texts with which a polish was measured to pay, and those that it goes through in all its epochs where nobody named their
number: more take hours on a processor."""
_EVERY_ANSWERED = (
    "every question is taken to have an answer, as no label says otherwise; give labelled rows too to a model that may give "
    "none"
)
_UNLABELLED = (
    "or train without labels, by the untouched model's answers alone: finetune teacher=true and teacher_weight=1"
)


@dataclass(frozen=True)
class Inputs:
    """A checkpoint with the data of a run, all of it read in the same way as the deciding rows."""

    checkpoint: Checkpoint
    validation: DataSet
    test: DataSet | None = None
    repair: Training | None = None
    calibration: DataSet | None = None
    texts: DataSet | None = None
    """All calibration rows of their own, where a polish may train on more than weights are fitted to."""
    unlabelled: DataSet | None = None
    """The unlabelled rows that confirm, with the untouched model's answers as labels; None where none can."""
    notes: tuple[str, ...] = ()
    """What the user should know of the unlabelled rows."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The inputs' names for people; see :attr:`axformer.wire.report.Report.names`."""
    headed: Headed | None = None
    """The training of a base model's new head; None for a fine-tuned checkpoint."""

    def calibrating(self, config: RunConfig) -> DataSet | None:
        """The calibration rows of their own that a run with these knobs uses: all of them if they train models too."""
        return self.texts if config.needs.polish and self.texts is not None else self.calibration


def open_inputs(settled: SettledRun, device: str) -> Inputs:
    """Load a checkpoint and its data. A new head is not trained yet.

    Raises:
        InputError: something cannot be read, or does not fit the other inputs.
    """
    run, settings = settled.run, settled.finetune
    rows = {}
    for part, reference in run.data().items():
        beat()
        rows[part] = read_data(part, source_of(reference), settings)
    beat()
    seed = 0 if settings is None else settings.seed
    loaded = for_run(load_checkpoint(run.checkpoint.uri, device, run.head, seed, run.pooling), rows)
    names = {part: shown_name(source.uri) for part, source in run.sources().items()}
    return replace(fitted_together(settled, loaded, rows), names=names)


def fitted_together(settled: SettledRun, checkpoint: Checkpoint, rows: Mapping[str, Rows]) -> Inputs:
    """A checkpoint with the rows of a run, all of them encoded as the deciding rows are.

    Args:
        settled: the run.
        checkpoint: ready for the validation rows.
        rows: by the fields of the run.

    Raises:
        InputError: something does not fit the other inputs.
    """
    config, test, more, train = settled.knobs, rows.get("test"), rows.get("calibrate"), rows.get("train")
    labelled, free = rows.get("validation"), rows.get("unlabelled")
    deciding = None if labelled is None else prepare(labelled, checkpoint, config)
    texts, calibration, confirming, shared = None, None, None, None
    if free is not None:
        calibrates = more is None and (deciding is None or config.needs.calibration)
        calibration, confirming = split(free, labelled, checkpoint, config, calibrates=calibrates)
        shared = None if calibration is None else _SHARED.format(len(calibration.rows), len(free))
    if checkpoint.task.name == EMBEDDING:
        _check_embedder(config, confirms=free is not None)
        goal = settled.run.goal
        of_answers = goal is not None and parse_goal(goal).name is GoalName.SAME_ANSWERS
        if config.within_points is not None and not of_answers and free is not None and are_pairs(free):
            checkpoint = replace(checkpoint, task=SentenceEmbedding(checkpoint.model.config, by_partners=True))
    if more is not None:
        texts = prepare_inputs(free if labelled is None else labelled, more, checkpoint, config)
        calibration = drawn_to_calibrate(texts, checkpoint, config)
    if deciding is None:
        check_can_answer(checkpoint.task)
        assert calibration is not None, "a run without validation data has rows that calibrate, which decide too"
        deciding = with_own_answers(calibration.rows, None, checkpoint, config)
        calibration = None
    measuring = None if test is None else prepare_like(deciding, test, checkpoint, config)
    repair = None
    if train is not None and settled.finetune is not None:
        fitted_to = "" if calibration is None else calibration.rows.digest()
        repair = _training(train, settled.finetune, deciding, checkpoint, config, fitted_to)
    inputs = Inputs(
        checkpoint, deciding, measuring, repair, calibration, texts if config.calibrate_rows is None else None
    )
    return inputs if confirming is None else _with_unlabelled(inputs, confirming, config, shared)


_SHARED = (
    "{:,} of its {:,} rows calibrate, the others confirm; with --calibrate, which takes the texts that the model was trained "
    "on, all of them confirm"
)


def _check_embedder(config: RunConfig, *, confirms: bool) -> None:
    """Check that nothing asks for labels of vectors, which have none."""
    if config.about.uses_labels:
        raise ConfigError(
            f"method={config.method} decides by labels, which vectors have not; take a goal without: operations, speedup or "
            "same-answers",
            "config",
        )
    if config.within_points is not None and not confirms:
        raise ConfigError(
            "vectors have no labels, and rows confirm that nearest texts stay; give them as unlabelled, not as validation data",
            "validation",
        )


def for_run(checkpoint: Checkpoint, rows: Mapping[str, Rows]) -> Checkpoint:
    """The checkpoint with the task that fits the rows of a run, by its fields."""
    if "validation" in rows:
        return checkpoint.for_rows(rows["validation"])
    return checkpoint.for_rows(rows["unlabelled"], is_labelled=False)


def _with_unlabelled(inputs: Inputs, rows: Rows, config: RunConfig, shared: str | None) -> Inputs:
    """The same inputs with the unlabelled rows that confirm, where answers can be compared."""
    checkpoint, deciding = inputs.checkpoint, inputs.validation
    if not takes_unlabelled(checkpoint.task, checkpoint.model.config):
        note = f"{UNLABELLED_ROWS}: a test of {checkpoint.task.name.replace('_', ' ')} needs labels, so none of them confirm"
        return replace(inputs, notes=(note,))
    is_labelled = deciding.samples.encoded.labels_as != OWN_ANSWERS
    others = {
        "the validation rows" if is_labelled else "the rows that calibrate and decide": deciding,
        "the calibration rows": inputs.calibrating(config),
        "the held-out rows": inputs.test,
    }
    made_with = {name: data.samples.encoded for name, data in others.items() if data is not None}
    if inputs.repair is not None:
        made_with["the training rows"] = inputs.repair.encoded
    kept, left_out = without_those_of(rows, deciding.rows, made_with, checkpoint, config)
    confirming = with_own_answers(kept, deciding.rows, checkpoint, config)
    asked = deciding.samples.encoded.labels_as == OWN_ANSWERS and isinstance(checkpoint.task, QuestionAnswering)
    others_like = unlike(figures_of(confirming, checkpoint.tokenizer), figures_of(deciding, checkpoint.tokenizer))
    told = [shared, left_out, _EVERY_ANSWERED if asked else None, others_like]
    return replace(
        inputs, unlabelled=confirming, notes=tuple(f"{UNLABELLED_ROWS}: {note}" for note in told if note is not None)
    )


def read_data(part: str, source: DataSource, settings: FinetuneSettings | None) -> Rows:
    """Read the data of a field of the run; without its labels where they are not looked at."""
    if part == "train":
        assert settings is not None, "a run with training data has settings"
        return _training_rows(source, settings)
    return read_rows(source.path, source.columns.without_answers() if part in WITHOUT_LABELS else source.columns)


def source_of(reference: DataRef) -> DataSource:
    """Where data lies, and its columns."""
    return DataSource(reference.uri, reference.columns or Columns())


def with_trained_head(inputs: Inputs, head: NewHead, config: RunConfig, surroundings: Surroundings) -> Inputs:
    """The same inputs with the base model trained for its new head."""
    base, training = inputs.checkpoint, inputs.repair
    assert training is not None, "a new head needs training data"
    deciding, _ = split_off(inputs.validation, base, config)
    headed = train_head(base, head, deciding, training, surroundings)
    if config.needs.base:
        training = replace(training, base=base)
    trained, unlabelled = loaded_again(headed, base), inputs.unlabelled
    if unlabelled is not None:  # it was answered by the head before its training
        unlabelled = with_own_answers(unlabelled.rows, inputs.validation.rows, trained, config)
    return replace(inputs, checkpoint=trained, repair=training, headed=headed, unlabelled=unlabelled)


def training_on(
    train: DataSource, settings: FinetuneSettings, deciding: DataSet, checkpoint: Checkpoint, config: RunConfig
) -> Training:
    """A training on the rows of a file, read like the deciding rows.

    Raises:
        InputError: the rows do not fit the model, or the model cannot be trained like that.
    """
    return _training(_training_rows(train, settings), settings, deciding, checkpoint, config)


def _training(
    rows: Rows,
    settings: FinetuneSettings,
    deciding: DataSet,
    checkpoint: Checkpoint,
    config: RunConfig,
    fitted_to: str = "",
) -> Training:
    device = checkpoint.model.device
    check_trainable(checkpoint.task.name, str(device))
    if settings.needs_labels and checkpoint.task.name == EMBEDDING:
        raise ConfigError(
            "finetune: vectors have no labels; train by the untouched model's alone, with teacher=true teacher_weight=1",
            "finetune",
        )
    if settings.bf16 and low_precision(device) is not torch.bfloat16:
        raise ConfigError("finetune bf16=true: this GPU has no bfloat16; leave bf16 out")
    check_freezes(checkpoint.model, checkpoint.architecture, settings)
    rows = replace(rows, labels_as=deciding.rows.labels_as)
    encoded = _encoded(deciding, rows, checkpoint, config, settings)
    return Training(rows if encoded.kept is None else rows.at(encoded.kept), encoded, settings, config, fitted_to)


def _training_rows(train: DataSource, settings: FinetuneSettings) -> Rows:
    return read_rows(train.path, train.columns if settings.needs_labels else train.columns.without_answers())


def _encoded(
    deciding: DataSet, rows: Rows, checkpoint: Checkpoint, config: RunConfig, settings: FinetuneSettings
) -> Encoded:
    """The training rows as the model takes them; without their labels if only a teacher is asked."""
    if settings.needs_labels:
        try:
            return encode_like(deciding, rows, checkpoint, config)
        except DataError as error:
            if any(map(rows.has, ANSWERS)):
                raise
            raise DataError(f"{error}; {_UNLABELLED}") from None
    inputs = prepare_inputs(deciding.rows, rows, checkpoint, config).samples.encoded
    return for_teacher(inputs, checkpoint.tokenizer)


def by_rows(
    config: RunConfig, confirming: DataSet | None, unlabelled: DataSet | None = None
) -> tuple[RunConfig, list[str]]:
    """The knobs with the points that the confirming rows are likely to certify, where they are to decide that, and a note."""
    rows = confirming_rows(confirming, unlabelled)
    if config.within_points != BY_ROWS or not rows:
        return config, []
    points = round(smallest_margin(rows, USUAL_RATE, USUAL_RATE) / POINT, 1)
    note = (
        f"no points were named: {rows:,} confirming rows are likely to certify {points:g}, so that many may be lost; more rows "
        "certify fewer"
    )
    return config.model_copy(update={"within_points": points}), [note]


def polish_by_texts(config: RunConfig, inputs: Inputs) -> tuple[RunConfig, list[str]]:
    """The knobs with the epochs of a polish that nobody named, where the texts are to decide that, and a note."""
    if not isinstance(config, CompressConfig) or config.polish is not None:
        return config, []
    texts = 0 if inputs.texts is None else len(inputs.texts.samples)
    is_possible = texts >= _MANY_TEXTS and inputs.repair is None and _can_be_trained(inputs.checkpoint)
    epochs = min(USUAL_POLISH, _MOST_TAUGHT // texts) if is_possible else 0
    note = (
        f"polish={epochs}, since so much is to go: the untouched model teaches what is left on all {texts:,} calibration rows, "
        "without labels; polish=0 leaves that out"
    )
    return config.model_copy(update={"polish": epochs}), [note] if epochs else []


def _can_be_trained(checkpoint: Checkpoint) -> bool:
    try:
        check_trainable(checkpoint.task.name, str(checkpoint.model.device))
    except ConfigError:
        return False
    return True


def check_fits(config: RunConfig, checkpoint: Checkpoint, repair: Training | None) -> None:
    """Check that a run with these knobs and this repair is possible.

    Raises:
        ConfigError: a knob does not go with the checkpoint, with another knob or with the repair.
    """
    config.check_training(has_train=repair is not None)
    if config.within_points is not None and checkpoint.task.name in (
        CausalLanguageModelling.name,
        MaskedLanguageModelling.name,
    ):
        raise ConfigError(
            f"knob within_points={config.within_points}: a language model's metric is its perplexity, which has no points; "
            f"{config.about.instead_of_points}"
        )
