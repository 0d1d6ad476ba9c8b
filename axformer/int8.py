"""A model as it is, in ONNX and in ONNX int8: made, checked and timed, without labels and without removing anything.

It is what a run is compared with, and often most of the speed. Nothing is claimed about accuracy: answers are compared with
those of the model itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional

from axformer.artifact import new_directory
from axformer.data.columns import ANSWERS, DataSource
from axformer.data.reading import read_rows, rows_of
from axformer.data.rows import Rows
from axformer.errors import ArtifactError, ConfigError
from axformer.forms.form import Form, NotMade
from axformer.forms.kinds import ONNX, ONNX_INT8
from axformer.forms.make import Finished, make_forms
from axformer.forms.onnx import check_packages
from axformer.intake.checkpoint import Checkpoint, load_checkpoint
from axformer.intake.dataset import DataSet, cutting_config, prepare
from axformer.model.compact import untouched
from axformer.plan.plan import Plan
from axformer.reporting.form_reports import stock_attention_in
from axformer.reporting.hub_card import write_hub_card
from axformer.reporting.speed import QUICK, Effort, measure_speed
from axformer.reporting.workloads import limits_of, own_workloads
from axformer.scores.own_answers import can_answer, with_own_answers
from axformer.tasks.embedding import SentenceEmbedding
from axformer.tasks.multiple_choice import MultipleChoice
from axformer.tasks.question_answering import QuestionAnswering
from axformer.wire.report import SpeedCell

SAMPLE = (
    "It works.",
    "I would not buy it again.",
    "The delivery was two days late, but the parts were all there.",
    "Nobody expected the second half to be this good.",
    "Please cancel my order and send the money back.",
    "The battery lasts a day if you do not use the camera much.",
    "She explained every step, and we were done before lunch.",
    "Why does the door not close when it rains?",
    "A film that takes its time and wastes none of it.",
    "The manual is wrong about the third screw.",
    "We met the mayor of Lisbon at a small hotel near the station.",
    "Prices rose by three percent in March, the bank said on Tuesday.",
    "It is loud, heavy and slow, and I love it.",
    "Can I change the address after the parcel has left?",
    "The soup was cold when it came, and the waiter only smiled.",
    "Two of the five samples showed no change after a week.",
    "My father bought the same one in 1987 and it still runs.",
    "There is a gap between what the trailer promises and what the film does.",
    "The new version starts faster, but it forgets my settings each time I close the window, which makes it useless at work.",
    "Great idea, poor finish.",
    "The train to the airport leaves every twenty minutes from platform four, except on Sundays, when it leaves every hour.",
    "I have no complaint about the staff, who were kind, patient and quick, only about the room, which smelled of paint.",
    "Scientists at the university found that the bees return to the same field for years.",
    "Not bad at all for the price.",
)
"""English sentences of unlike lengths, in which a classifier, a regressor or a tagger finds something to say."""


@dataclass(frozen=True)
class Timed:
    """One graph beside the model in PyTorch."""

    form: Form
    milliseconds: float
    """Median for one input."""
    times: float
    """How many times as fast as the model in PyTorch with one input."""
    times_interval: tuple[float, float]
    same: float | None
    """Share of the rows with the same answer; None where answers are numbers."""
    cosine: float | None = None
    """Of an embedder: the mean cosine of its vectors and the model's."""


@dataclass(frozen=True)
class AsItIs:
    """What became of a model."""

    checkpoint: Checkpoint
    rows: int
    is_sample: bool
    """Whether the rows are :data:`SAMPLE`."""
    milliseconds: float
    """Of the model in PyTorch, one input."""
    forms: Sequence[Timed]
    not_made: Sequence[NotMade]

    @property
    def written(self) -> list[Form | NotMade]:
        """The graphs, and those that could not be made."""
        return [*(one.form for one in self.forms), *self.not_made]


def make_int8(reference: str | Path, output: Path, data: DataSource | None = None, effort: Effort = QUICK) -> AsItIs:
    """Write ``hub/`` of a model as it is.

    Args:
        reference: a local directory, or ``hf://organisation/name``.
        output: the directory for ``hub/``; it must not exist, or be empty.
        data: rows of the kind that the model will see, without labels; None for :data:`SAMPLE`.
        effort: how long speed is measured.

    Raises:
        InputError: the checkpoint or the data do not fit, or the directory exists.
        ArtifactError: no graph passed its check.
        ConfigError: a package of ONNX is not installed, or the model needs rows.
    """
    check_packages([ONNX, ONNX_INT8])
    rows = None if data is None else read_rows(data.path, data.columns)
    checkpoint = load_checkpoint(reference)
    checkpoint = checkpoint if rows is None else checkpoint.for_rows(rows, is_labelled=any(map(rows.has, ANSWERS)))
    known = _answered(checkpoint, rows)
    whole = untouched(checkpoint.model, checkpoint.architecture) or checkpoint.model
    finished = Finished(checkpoint, Plan.full(checkpoint.dimensions), whole, known.samples)
    with new_directory(output) as draft:
        forms = make_forms(finished, [ONNX, ONNX_INT8], draft)
        made = [form for form in forms if isinstance(form, Form)]
        if not made:
            raise ArtifactError("; ".join(form.reason for form in forms if isinstance(form, NotMade)))
        config = checkpoint.model.config
        limits = limits_of(checkpoint.head, config, checkpoint.architecture.max_tokens(config))
        loads = own_workloads(known.samples.encoded, checkpoint.tokenizer, limits, [1])
        with stock_attention_in(checkpoint.model):
            before, *cells = measure_speed([checkpoint.model, *(form.model for form in made)], loads, effort)
        on = f"{len(known.rows)} built-in English sentences" if rows is None else f"{len(known.rows):,} rows"
        speeds = {form.name: cell for form, (cell,) in zip(made, cells, strict=True)}
        write_hub_card(
            draft, checkpoint, reference, "It is as it was: nothing was removed or trained.", on, forms, speeds
        )
    return AsItIs(
        *(checkpoint, len(known.rows), rows is None, before[0].p50_ms),
        forms=[_timed(form, cell) for form, (cell,) in zip(made, cells, strict=True)],
        not_made=[form for form in forms if isinstance(form, NotMade)],
    )


def _answered(checkpoint: Checkpoint, rows: Rows | None) -> DataSet:
    """The rows with the model's own answers, or with their labels where answers are no labels."""
    config = cutting_config(checkpoint)
    task = checkpoint.task
    if can_answer(task) and (rows is not None or not isinstance(task, MultipleChoice)):
        return with_own_answers(rows or _sample(task.name), None, checkpoint, config)
    if rows is None:
        raise ConfigError(
            f"there are no built-in rows for a model for {task.name.replace('_', ' ')}; give some by --data"
        )
    return prepare(rows, checkpoint, config)


_QUESTION = "What is it about?"


def _sample(task: str) -> Rows:
    if task == QuestionAnswering.name:
        return rows_of([{"question": _QUESTION, "context": text} for text in SAMPLE])
    words = task == "token_classification"
    return rows_of([{"tokens": text.split()} if words else {"text": text} for text in SAMPLE])


def _timed(form: Form, cell: SpeedCell) -> Timed:
    assert form.checked is not None, "make_forms compares it over all rows"
    assert cell.times is not None, "it is not the first"
    assert cell.times_interval is not None, "as above"
    checked = form.checked
    cosine = None
    if isinstance(checked.expected.task, SentenceEmbedding):
        before, after = (torch.stack(list(one.answers)) for one in (checked.expected, checked.agreement.measured))
        cosine = float(functional.cosine_similarity(before, after).mean())
    return Timed(form, cell.p50_ms, cell.times, cell.times_interval, checked.same, cosine)
