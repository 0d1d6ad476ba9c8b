"""Opens the inputs of a pass: loads a checkpoint and its data, checks that they fit together, and writes notes for the user."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch

from axformer.config import RunConfig
from axformer.config.common import BY_ROWS
from axformer.data.columns import ANSWERS, Columns, DataSource
from axformer.data.encoding import Encoded
from axformer.data.reading import read_rows
from axformer.data.rows import Rows
from axformer.devices import gain_in_rate, low_precision
from axformer.errors import ConfigError, DataError
from axformer.intake.checkpoint import Checkpoint, load_checkpoint
from axformer.intake.dataset import (
    SHARE,
    DataSet,
    encode_like,
    prepare,
    prepare_calibration,
    prepare_inputs,
    prepare_like,
)
from axformer.intake.likeness import figures_of, unlike
from axformer.intake.parts import FEW_INPUTS, split_off
from axformer.new_head import Headed, loaded_again, train_head
from axformer.repair.freezing import check_freezes
from axformer.repair.refit import can_refit
from axformer.repair.teacher import for_teacher
from axformer.repair.training import Training, check_trainable
from axformer.scores.own_answers import check_can_answer, split, with_own_answers, without_those_of
from axformer.scores.planning import POINT, USUAL_POINTS, USUAL_RATE, free_of_labels_told, smallest_margin
from axformer.scores.task_tests import takes_unlabelled, too_few_rows
from axformer.surroundings import Surroundings
from axformer.tasks.causal_lm import CausalLanguageModelling
from axformer.tasks.masked_lm import MaskedLanguageModelling
from axformer.wire.finetuning import FinetuneSettings
from axformer.wire.heads import NewHead
from axformer.wire.references import DataRef, shown_name
from axformer.wire.report import ENOUGH_TOKENS
from axformer.wire.run import WITHOUT_LABELS, SettledRun

_UNLABELLED = (
    "or train without labels, by the untouched model's answers alone: finetune teacher=true and teacher_weight=1"
)
CALIBRATION = "calibration"
"""The name of separate calibration data."""
UNLABELLED_ROWS = "unlabelled data"


@dataclass(frozen=True)
class Inputs:
    """A checkpoint with the data of a run, all of it read in the same way as the deciding rows."""

    checkpoint: Checkpoint
    validation: DataSet
    test: DataSet | None = None
    repair: Training | None = None
    calibration: DataSet | None = None
    unlabelled: DataSet | None = None
    """The unlabelled rows that confirm, with the untouched model's answers as labels; None where none can."""
    notes: tuple[str, ...] = ()
    """What the user should know of the unlabelled rows."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The inputs' names for people; see :attr:`axformer.wire.report.Report.names`."""
    headed: Headed | None = None
    """The training of a base model's new head; None for a fine-tuned checkpoint."""


def open_inputs(settled: SettledRun, device: str) -> Inputs:
    """Load a checkpoint and its data. A new head is not trained yet.

    Raises:
        InputError: something cannot be read, or does not fit the other inputs.
    """
    run, settings = settled.run, settled.finetune
    rows = {part: read_data(part, source_of(reference), settings) for part, reference in run.data().items()}
    seed = 0 if settings is None else settings.seed
    loaded = for_run(load_checkpoint(run.checkpoint.uri, device, run.head, seed), rows)
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
    calibration, confirming = None, None
    if free is not None:
        calibrates = deciding is None or (more is None and config.needs.calibration)
        calibration, confirming = split(free, deciding, checkpoint, config, calibrates=calibrates)
    if deciding is None:
        check_can_answer(checkpoint.task)
        assert calibration is not None, "a run without validation data has unlabelled rows that calibrate"
        deciding = with_own_answers(calibration.rows, None, checkpoint, config)
        calibration = None
    if more is not None:
        calibration = prepare_calibration(deciding, more, checkpoint, config)
    measuring = None if test is None else prepare_like(deciding, test, checkpoint, config)
    repair = None
    if train is not None and settled.finetune is not None:
        fitted_to = "" if calibration is None else calibration.rows.digest()
        repair = _training(train, settled.finetune, deciding, checkpoint, config, fitted_to)
    inputs = Inputs(checkpoint, deciding, measuring, repair, calibration)
    return inputs if confirming is None else _with_unlabelled(inputs, confirming, config)


def for_run(checkpoint: Checkpoint, rows: Mapping[str, Rows]) -> Checkpoint:
    """The checkpoint with the task that fits the rows of a run, by its fields."""
    if "validation" in rows:
        return checkpoint.for_rows(rows["validation"])
    return checkpoint.for_rows(rows["unlabelled"], is_labelled=False)


def _with_unlabelled(inputs: Inputs, rows: Rows, config: RunConfig) -> Inputs:
    """The same inputs with the unlabelled rows that confirm, where answers can be compared."""
    checkpoint, deciding = inputs.checkpoint, inputs.validation
    if not takes_unlabelled(checkpoint.task):
        note = f"{UNLABELLED_ROWS}: a test of {checkpoint.task.name.replace('_', ' ')} needs labels, so none of them confirm"
        return replace(inputs, notes=(note,))
    others = {
        "the validation rows": deciding,
        "the calibration rows": inputs.calibration,
        "the held-out rows": inputs.test,
    }
    made_with = {name: data.samples.encoded for name, data in others.items() if data is not None}
    if inputs.repair is not None:
        made_with["the training rows"] = inputs.repair.encoded
    kept, left_out = without_those_of(rows, deciding, made_with, checkpoint, config)
    confirming = with_own_answers(kept, deciding, checkpoint, config)
    told = [left_out, unlike(figures_of(confirming, checkpoint.tokenizer), figures_of(deciding, checkpoint.tokenizer))]
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
    return replace(inputs, checkpoint=loaded_again(headed, base), repair=training, headed=headed)


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
    inputs = prepare_inputs(deciding, rows, checkpoint, config).samples.encoded
    return for_teacher(inputs, checkpoint.tokenizer)


def by_rows(
    config: RunConfig, confirming: DataSet | None, unlabelled: DataSet | None = None
) -> tuple[RunConfig, list[str]]:
    """The knobs with the points that the confirming rows are likely to certify, where they are to decide that, and a note."""
    rows = _confirming_rows(confirming, unlabelled)
    if config.within_points != BY_ROWS or not rows:
        return config, []
    points = round(smallest_margin(rows, USUAL_RATE, USUAL_RATE) / POINT, 1)
    note = (
        f"no points were named: {rows:,} confirming rows are likely to certify {points:g}, so that many may be lost; more rows "
        "certify fewer"
    )
    return config.model_copy(update={"within_points": points}), [note]


def _confirming_rows(*sets: DataSet | None) -> int:
    """How many rows confirm; copies of an input are counted once."""
    return sum(int(data.samples.voters.sum()) for data in sets if data is not None)


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


def notes_on(
    checkpoint: Checkpoint,
    sets: Mapping[str, DataSet | None],
    confirming: DataSet | None,
    config: RunConfig,
    fitted: DataSet,
    repair: Training | None,
    unlabelled: DataSet | None = None,
) -> list[str]:
    """Notes for the user before the pass, on the input or on this machine.

    Args:
        sets: data by its name in notes, including ``validation``, which ``calibration`` should resemble.
        confirming: the confirming part of the validation data.
        fitted: what weights are fitted to, if the knobs ask for a fit.
        repair: what follows the pass.
        unlabelled: the unlabelled rows that confirm.
    """
    given = {name: data for name, data in sets.items() if data is not None}
    encoded = {name: data.samples.encoded for name, data in given.items()}
    if repair is not None:
        encoded["train"] = repair.encoded
    return [
        *checkpoint.notes,
        *_on_inputs(given["validation"], confirming),
        *_on_data(encoded, config),
        *_on_calibration(checkpoint, given),
        *(_on_fit(checkpoint, fitted) if config.needs.fitting else []),
        *_on_padding(checkpoint, encoded.values()),
        *(
            _on_points(checkpoint, confirming, config)
            if unlabelled is None
            else [_on_labels(_confirming_rows(confirming, unlabelled), _confirming_rows(unlabelled), config)]
        ),
        *_on_training(checkpoint, repair),
    ]


def _on_inputs(validation: DataSet, confirming: DataSet | None) -> Iterator[str]:
    """Notes if inputs repeat, and if few different ones decide."""
    rows, inputs = len(validation.samples), int(validation.samples.voters.sum())
    if rows - inputs > SHARE * rows:
        yield (
            f"validation data: its {rows:,} rows hold {inputs:,} different inputs; the copies of one stay together wherever "
            "rows are split, and it counts once where rows are counted"
        )
    deciding = inputs - (0 if confirming is None else int(confirming.samples.voters.sum()))
    if deciding < FEW_INPUTS:
        yield (
            f"validation data: only {deciding} different inputs decide, on which a part may look useless by chance; give "
            f"{FEW_INPUTS} or more, better some hundreds"
        )


def _on_data(sets: Mapping[str, Encoded], config: RunConfig) -> Iterator[str]:
    for name, data in sets.items():
        if data.cut:
            yield (
                f"{name} data: {data.cut} of {data.samples} rows are longer than max_length={config.max_length} and "
                "lose their end"
            )
    for name, data in sets.items():
        for note in data.notes:
            yield f"{name} data: {note}"


def _on_calibration(checkpoint: Checkpoint, sets: Mapping[str, DataSet]) -> Iterator[str]:
    """Notes if the calibration data seems to differ from the validation data in language or format."""
    if CALIBRATION not in sets:
        return
    calibration, validation = sets[CALIBRATION], sets["validation"]
    note = unlike(figures_of(calibration, checkpoint.tokenizer), figures_of(validation, checkpoint.tokenizer))
    if note is not None:
        yield f"{CALIBRATION} data: {note}"
    if calibration.rows.has("text") and calibration.rows.has("text_pair") and not validation.rows.has("text_pair"):
        yield f"{CALIBRATION} data: its rows are pairs, for it has a column of second texts, which the validation data has not"


def _on_fit(checkpoint: Checkpoint, fitted: DataSet) -> Iterator[str]:
    """Notes if weights cannot be fitted, or not to much."""
    if not can_refit(checkpoint.model, checkpoint.architecture):
        yield (
            f"the layers of models of type '{checkpoint.architecture.model_type}' share their weights, which cannot be fitted "
            "to one layer, so they stay as they are"
        )
        return
    tokens = sum(int(batch.inputs["attention_mask"].sum()) for batch in fitted.samples.batches)
    neurons = checkpoint.dimensions.intermediate_size
    if tokens < ENOUGH_TOKENS * neurons:
        yield (
            f"weights are fitted to {tokens:,} tokens, {tokens / neurons:.2g} for each of a block's {neurons:,} neurons; fewer "
            f"than {ENOUGH_TOKENS} are few, and where they do not suffice only the bias is fitted: give more rows, without "
            "labels, with --calibrate"
        )


def _on_padding(checkpoint: Checkpoint, sets: Iterable[Encoded]) -> Iterator[str]:
    apart = checkpoint.padding.apart
    lengths = [length for data in sets for length in data.lengths]
    longer = sum(length > apart for length in lengths) if apart else 0
    if 0 < longer < len(lengths):
        yield (
            f"{longer:,} rows have more than {apart} tokens, from where the model's rope type longrope counts positions of a "
            "whole batch otherwise: they are measured in batches of their own; serve short and long texts apart too"
        )
    if checkpoint.padding.alone and not checkpoint.architecture.causal:
        yield "the model's head reads padding too, so its rows go through it one at a time; serve it one text at a time"
    elif checkpoint.padding.alone:
        yield (
            "the model names no pad token, so its rows go through it one at a time, as transformers has it; a pass takes less "
            "time with pad_token_id in config.json, a token that ends no text"
        )


def _on_points(checkpoint: Checkpoint, confirming: DataSet | None, config: RunConfig) -> Iterator[str]:
    if config.within_points is not None and confirming is not None:
        rows, share = int(confirming.samples.voters.sum()), config.confirm
        note = too_few_rows(checkpoint.task.name, rows, float(config.within_points), share)
        if note is not None:
            yield note


def _on_labels(rows: int, unlabelled: int, config: RunConfig) -> str:
    """What so many rows certify without a label."""
    points = USUAL_POINTS if config.within_points is None else float(config.within_points)
    told, can_certify = free_of_labels_told(rows, points)
    return f"{rows:,} rows confirm, {unlabelled:,} of them without labels: {told}" if can_certify else told


def _on_training(checkpoint: Checkpoint, repair: Training | None) -> Iterator[str]:
    if repair is not None and repair.settings.bf16:
        gain = gain_in_rate(checkpoint.model.device)
        if gain < 1:
            yield (
                f"matrices are multiplied {gain:.2g} times as fast in bfloat16 as in float32 here, so the training takes "
                "longer with bf16=true; leave bf16 out"
            )
