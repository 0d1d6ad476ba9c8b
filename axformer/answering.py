"""The answers of a model to the rows of a file, as ``axformer certify --answers`` takes them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from axformer.config import RunConfig, reading_config
from axformer.data.columns import ANSWERS, DataSource
from axformer.data.reading import read_rows
from axformer.errors import CheckpointError, ConfigError
from axformer.forms.kinds import COMPACT, KINDS
from axformer.intake.checkpoint import Checkpoint, load_checkpoint
from axformer.intake.dataset import DataSet, prepare
from axformer.plan.plan import read_plan_file
from axformer.reporting.bench import compact_checkpoint, load_form
from axformer.reporting.form_reports import one_by_one
from axformer.scores.decisions import decisions_of
from axformer.scores.measured import measure
from axformer.scores.own_answers import with_own_answers
from axformer.tasks.base import Task
from axformer.tasks.binary import BinaryClassification
from axformer.tasks.classification import Classification, OneOfSeveral
from axformer.tasks.one_output import CROSS_ENCODER_KEYS
from axformer.tasks.reranking import Reranking
from axformer.wire.metrics import REGRESSION

_IF_BINARY = (
    f'; if its one output says yes or no, say "{CROSS_ENCODER_KEYS[0]}": '
    '{"activation_fn": "torch.nn.modules.activation.Sigmoid"} in config.json'
)


def answers_to(
    model: str, source: DataSource, device: str, form: str = COMPACT, max_length: int | None = None
) -> list[dict[str, Any]]:
    """Every row with its columns, an ``id`` (its number where it has none), the model's ``answer`` and, where the row has one,
    its ``label``; both by the names of classes. Of passages it is the place of the best, from 0; where several are right, the
    first of them stands for each.

    Args:
        model: a checkpoint, or the directory of a result.
        source: rows, which need no labels.
        device: the device that PyTorch computes on.
        form: which form of a result answers, one row at a time if it is not the compact one.
        max_length: longer rows are cut to this many tokens; None for what a result's run said.

    Raises:
        ConfigError: there is no such form.
        InputError: the model or the data cannot be read, or they do not fit.
        CheckpointError: it is not a model with one right or wrong answer a row.
    """
    rows = read_rows(source.path, source.columns)
    has_labels = any(map(rows.has, ANSWERS))
    checkpoint, config = _opened(model, device)
    if max_length is not None:
        config = config.model_copy(update={"max_length": max_length})
    checkpoint = checkpoint.for_rows(rows, is_labelled=has_labels)
    _check_task(checkpoint, model)
    answered = with_own_answers(rows, None, checkpoint, config)
    answers: Sequence[int | None] = [right[0] for right in _right(answered, checkpoint.task)]
    if form != COMPACT:
        measured = measure(_form(model, form, device), checkpoint.task, one_by_one(answered, checkpoint).samples)
        decisions = decisions_of(measured)
        assert decisions is not None, "the task was checked: each row has an answer"
        answers = decisions
    found = {"answer": answers}
    if has_labels:
        right = _right_of_rows(prepare(rows, checkpoint, config), checkpoint.task, len(rows))
        found["label"] = [next(iter(here), None) for here in right]
        found["answer"] = [here[0] if one in here else one for one, here in zip(answers, right, strict=True)]
    named = {name: [_named(checkpoint, value) for value in values] for name, values in found.items()}
    columns = {"id": list(range(len(rows))), **rows.table, **named}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _opened(reference: str, device: str) -> tuple[Checkpoint, RunConfig]:
    """A model, and the config that its rows are read with; for a result, that of its run."""
    if (Path(reference) / "plan.json").is_file():
        return compact_checkpoint(Path(reference), device), reading_config(read_plan_file(Path(reference)).config)
    return load_checkpoint(reference, device), reading_config({})


def _form(reference: str, name: str, device: str) -> Any:
    """A form of a result."""
    there = [kind.name for kind in KINDS.values() if kind.is_in(Path(reference))]
    if name not in there:
        known = f"it has {', '.join(there)}" if there else "forms are those of a result"
        raise ConfigError(f"'{reference}' has no form '{name}'; {known}")
    return load_form(Path(reference), KINDS[name], device)


def has_answers(task: Task) -> bool:
    """Whether a row has one answer, right or wrong: a class, yes or no, a choice, the best passage."""
    return isinstance(task, OneOfSeveral | BinaryClassification | Reranking)


def _right(data: DataSet, task: Task) -> list[list[int]]:
    """The right answers to each row that has a label."""
    encoded = data.samples.encoded
    return task.right(encoded) if isinstance(task, Reranking) else [[int(label)] for label in encoded.labels]


def _right_of_rows(data: DataSet, task: Task, rows: int) -> list[list[int]]:
    """The right answers to each row of a file; a row that was left out has none."""
    kept = data.samples.encoded.kept
    found: list[list[int]] = [[] for _ in range(rows)]
    for row, right in zip(range(rows) if kept is None else kept, _right(data, task), strict=True):
        found[row] = right
    return found


def _check_task(checkpoint: Checkpoint, reference: str) -> None:
    task, config = checkpoint.task, checkpoint.model.config
    if not has_answers(task):
        may_be_binary = task.name == REGRESSION and config.num_labels == 1 and config.problem_type is None
        raise CheckpointError(
            f"'{reference}' is a model for {task.name.replace('_', ' ')}; answers are written where a row has one, right "
            f"or wrong: a class, yes or no, a choice, the best passage{_IF_BINARY if may_be_binary else ''}"
        )


def _named(checkpoint: Checkpoint, answer: int | None) -> Any:
    """A class by its name, yes or no as 1 or 0, a choice or a passage by its index."""
    is_class = isinstance(checkpoint.task, Classification)
    return checkpoint.model.config.id2label[answer] if is_class else answer
