"""Notes for the user before a run, on its inputs or on this machine."""

from collections.abc import Iterable, Iterator, Mapping

from axformer.config import RunConfig
from axformer.data.encoding import Encoded
from axformer.devices import gain_in_rate
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import (
    SHARE,
    DataSet,
)
from axformer.intake.likeness import figures_of, unlike
from axformer.intake.parts import FEW_INPUTS
from axformer.repair.refit import can_refit
from axformer.repair.training import Training
from axformer.scores.paired_tests import FEWEST_ROWS
from axformer.scores.planning import USUAL_POINTS, free_of_labels_told
from axformer.scores.sampled_test import MOST_LABELS
from axformer.scores.task_tests import is_share_right, too_few_rows
from axformer.wire.data_summary import ENOUGH_TOKENS
from axformer.wire.metrics import EMBEDDING, REGRESSION

CALIBRATION = "calibration"
"""The name of separate calibration data."""
UNLABELLED_ROWS = "unlabelled data"


def confirming_rows(*sets: DataSet | None) -> int:
    """How many rows confirm; copies of an input are counted once."""
    return sum(int(data.samples.voters.sum()) for data in sets if data is not None)


def notes_on(
    checkpoint: Checkpoint,
    sets: Mapping[str, DataSet | None],
    confirming: DataSet | None,
    config: RunConfig,
    fitted: DataSet,
    repair: Training | None,
    unlabelled: DataSet | None = None,
    deciding: DataSet | None = None,
) -> list[str]:
    """Notes for the user before the pass, on the input or on this machine.

    Args:
        sets: data by its name in notes, including ``validation``, which ``calibration`` should resemble.
        confirming: the rows that confirm and need no label any more.
        fitted: what weights are fitted to, if the knobs ask for a fit.
        repair: what follows the pass.
        unlabelled: the unlabelled rows that confirm.
        deciding: the part of the validation data that decides; None for all of it.
    """
    given = {name: data for name, data in sets.items() if data is not None}
    encoded = {name: data.samples.encoded for name, data in given.items()}
    if repair is not None:
        encoded["train"] = repair.encoded
    return [
        *checkpoint.notes,
        *_on_inputs(given["validation"], deciding or given["validation"]),
        *_on_data(encoded, config),
        *_on_calibration(checkpoint, given),
        *(_on_fit(checkpoint, fitted) if config.needs.fitting else []),
        *_on_padding(checkpoint, encoded.values()),
        *(
            _on_points(checkpoint, confirming, config, 1.0 if deciding is given["validation"] else config.confirm)
            if unlabelled is None
            else [_on_labels(checkpoint, confirming_rows(confirming, unlabelled), confirming_rows(unlabelled), config)]
        ),
        *_on_training(checkpoint, repair),
    ]


def _on_inputs(validation: DataSet, deciding: DataSet) -> Iterator[str]:
    """Notes if inputs repeat, and if few different ones decide."""
    rows, inputs = len(validation.samples), int(validation.samples.voters.sum())
    if rows - inputs > SHARE * rows:
        yield (
            f"validation data: its {rows:,} rows hold {inputs:,} different inputs; the copies of one stay together wherever "
            "rows are split, and it counts once where rows are counted"
        )
    decide = int(deciding.samples.voters.sum())
    if decide < FEW_INPUTS:
        yield (
            f"validation data: only {decide} different inputs decide, on which a part may look useless by chance; give "
            f"{FEW_INPUTS} or more, better some hundreds"
        )


def _on_data(sets: Mapping[str, Encoded], config: RunConfig) -> Iterator[str]:
    for name, data in sets.items():
        if data.cut:
            limit = "the embedder reads" if config.max_length is None else f"max_length={config.max_length}"
            yield (f"{name} data: {data.cut} of {data.samples} rows are longer than {limit} and lose their end")
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


def _on_points(checkpoint: Checkpoint, confirming: DataSet | None, config: RunConfig, share: float) -> Iterator[str]:
    if config.within_points is not None and confirming is not None:
        rows = int(confirming.samples.voters.sum())
        note = too_few_rows(checkpoint.task.name, rows, float(config.within_points), share)
        if note is not None:
            yield note


def _on_labels(checkpoint: Checkpoint, rows: int, unlabelled: int, config: RunConfig) -> str:
    """What so many rows certify without a label."""
    points = USUAL_POINTS if config.within_points is None else float(config.within_points)
    told, can_certify = free_of_labels_told(rows, points, is_share=is_share_right(checkpoint.task.name))
    labels = f"{told} (axformer label)"
    if checkpoint.task.name == EMBEDDING:
        labels = told.partition(", beyond")[0]
    elif checkpoint.task.name == REGRESSION:
        labels = f"{FEWEST_ROWS} to {MOST_LABELS} labels decide about a model (axformer label)"
    free = f"{rows:,} rows confirm, {unlabelled:,} of them without labels: {labels}"
    return free if can_certify else told


def _on_training(checkpoint: Checkpoint, repair: Training | None) -> Iterator[str]:
    if repair is not None and repair.settings.bf16:
        gain = gain_in_rate(checkpoint.model.device)
        if gain < 1:
            yield (
                f"matrices are multiplied {gain:.2g} times as fast in bfloat16 as in float32 here, so the training takes "
                "longer with bf16=true; leave bf16 out"
            )
