"""Measure every form of a finished result again, thoroughly, on this machine."""

import inspect
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from transformers import AutoTokenizer

from axformer.architectures.registry import architecture_of
from axformer.config import reading_config
from axformer.data.columns import DataSource
from axformer.data.encoding import Encoded, one_row_a_sample
from axformer.data.reading import read_rows
from axformer.data.rows import Rows
from axformer.errors import ArtifactError, InputError, first_line
from axformer.forms.agreement import compare_outputs
from axformer.forms.form import Form
from axformer.forms.fresh import Fresh
from axformer.forms.kinds import BASE, COMPACT, KINDS, Kind
from axformer.forms.make import python_for
from axformer.intake.checkpoint import Checkpoint, digest, load_checkpoint
from axformer.intake.companions import Companions, companion_files, tokenizer_files
from axformer.intake.dataset import DataSet, prepare
from axformer.intake.rebuilt import check_inputs
from axformer.intake.weights import read_weights
from axformer.model.compact import MODEL_TYPE_PREFIX
from axformer.model.number_format import cast, format_of
from axformer.plan.plan import PlanFile, read_plan_file
from axformer.plan.result_files import no_result
from axformer.reporting.environment import describe
from axformer.reporting.form_reports import MeasuredForm, form_report, stock_attention_in, summary
from axformer.reporting.speed import Effort, measure_speed
from axformer.reporting.workloads import BATCHES, limits_of, workloads
from axformer.scores.measured import Measured
from axformer.tasks.registry import task_of
from axformer.wire.data_summary import DataSummary
from axformer.wire.report import FormReport, SpeedCell

BENCH_FORMAT: Literal["axformer-bench/1"] = "axformer-bench/1"
MADE_UP_TOKENS = 32
"""Tokens of a generated row; rows are repeated or cut to each length."""
MADE_UP_CHOICES = 4
"""Choices of a generated row for multiple choice."""


class BenchReport(BaseModel):
    """The results of a bench."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["axformer-bench/1"] = BENCH_FORMAT
    base: FormReport | None = Field(description="The untouched model, if it was given.")
    forms: list[FormReport] = Field(
        description="The forms in the result; `validation` holds the figures on the given data."
    )
    data: DataSummary | None = Field(description="The given data; null if inputs were generated.")
    environment: dict[str, Any] = Field(description="Versions and hardware that produced these figures.")


def bench(result: Path, base: str | None, data: DataSource | None, device: str, effort: Effort) -> BenchReport:
    """Measure all forms of a result in turn.

    Args:
        result: the directory that a pass wrote.
        base: the checkpoint before the pass, to be measured too.
        data: rows with labels, for losses, metrics and the speed at their own lengths.
        device: the device that PyTorch computes on.
        effort: how long each speed measurement runs.

    Raises:
        InputError: the directory holds no result, a form is damaged, or the checkpoint or the data do not fit.
    """
    rows = None if data is None else read_rows(data.path, data.columns)
    compact = _for(rows, compact_checkpoint(result, device))
    plan = read_plan_file(result)
    untouched = None if base is None else _for(rows, _untouched(base, plan, compact, device))
    prepared = None if rows is None else prepare(rows, compact, reading_config(plan.config))
    encoded = made_up(compact) if prepared is None else prepared.samples.encoded
    forms = _forms(result, compact, encoded, device)
    base_cells, cells = _speed(compact, untouched, forms, encoded, prepared, effort)
    measured = _measured(compact, forms, cells, prepared)
    first = next(one for one in measured if one.form.name == COMPACT)
    before = None
    if untouched is not None:
        sets = {"validation": prepared}
        before = MeasuredForm(_base(untouched, encoded), base_cells, untouched.task, sets, {})
    return BenchReport(
        base=None if before is None else form_report(before, before, first),
        forms=[form_report(one, before, first) for one in measured],
        data=None if prepared is None else summary(prepared),
        environment=describe(device),
    )


def compact_checkpoint(result: Path, device: str) -> Checkpoint:
    """Load the compact form of a result as a checkpoint, in its own number format.

    Raises:
        InputError: the result has no compact form, or it is damaged.
    """
    kind = KINDS[COMPACT]
    directory = result / kind.directory
    if not directory.is_dir():
        raise no_result(result, kind.directory)
    model = load_form(result, kind, device)
    with _loading(result, "tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    architecture = architecture_of(model.config.model_type.removeprefix(MODEL_TYPE_PREFIX))
    head = architecture.head_of(model)
    assert head is not None, "results hold models with a head"
    return Checkpoint(
        model=model,
        tokenizer=tokenizer,
        architecture=architecture,
        head=head,
        task=task_of(head.auto_class, model.config),
        sha256=digest(read_weights(directory).files),
        bytes=kind.bytes_in(directory),
        dtype=format_of(model),
        companions=Companions(tokenizer_files(tokenizer, directory) | companion_files(directory), {}),
        directory=directory,
    )


def made_up(checkpoint: Checkpoint) -> Encoded:
    """Generate rows of random tokens for speed measurements, as many as the largest batch holds."""
    tokenizer, rng = checkpoint.tokenizer, random.Random(0)  # noqa: S311 - not a secret
    known = [token for token in range(len(tokenizer)) if token not in tokenizer.all_special_ids]
    accepted = inspect.signature(checkpoint.model.forward).parameters
    constants = {"attention_mask": 1, "token_type_ids": 0}
    choices = MADE_UP_CHOICES if checkpoint.task.name == "multiple_choice" else 1
    features: dict[str, list[Any]] = {"input_ids": []}
    features |= {name: [] for name in constants if name in tokenizer.model_input_names and name in accepted}
    for _ in range(max(BATCHES)):
        for name, rows in features.items():
            row = [_ids(constants.get(name), known, rng) for _ in range(choices)]
            rows.append(row if choices > 1 else row[0])
    return replace(one_row_a_sample(features, [0] * max(BATCHES), 0), padding=checkpoint.padding)


def _ids(constant: int | None, known: list[int], rng: random.Random) -> list[int]:
    return rng.choices(known, k=MADE_UP_TOKENS) if constant is None else [constant] * MADE_UP_TOKENS


def _untouched(base: str, plan: PlanFile, compact: Checkpoint, device: str) -> Checkpoint:
    """Load the checkpoint before the pass in its own number format, and check that it fits the result."""
    checkpoint = load_checkpoint(base, device)
    cast(checkpoint.model, checkpoint.dtype)
    kinds = [(model.architecture.model_type, model.head.name) for model in (checkpoint, compact)]
    if kinds[0] != kinds[1]:
        raise InputError(
            f"checkpoint '{base}' is a {' '.join(kinds[0])}, the result was made from a {' '.join(kinds[1])}; give that one"
        )
    plan.plan.check_fits(checkpoint.dimensions)
    return checkpoint


def _for(rows: Rows | None, checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint with the task of the data, if there is data."""
    return checkpoint if rows is None else checkpoint.for_rows(rows)


def _forms(result: Path, compact: Checkpoint, encoded: Encoded, device: str) -> list[Form]:
    forms = []
    for kind in KINDS.values():
        if kind.is_in(result):
            model = compact.model if kind.name == COMPACT else load_form(result, kind, device)
            directory, what = result / kind.directory, f"result '{result}'"
            fresh = None if kind.for_gpu else _fresh(kind, directory, compact, encoded, what)
            forms.append(Form(kind.name, model, kind.bytes_in(directory), fresh))
    return forms


def _base(untouched: Checkpoint, encoded: Encoded) -> Form:
    assert untouched.directory is not None, "it was loaded from files"
    fresh = _fresh(BASE, untouched.directory, untouched, encoded, f"checkpoint '{untouched.directory}'")
    return Form(BASE.name, untouched.model, untouched.bytes, fresh)


def load_form(result: Path, kind: Kind, device: str) -> Any:
    """Load a form of a result.

    Raises:
        InputError: it does not load.
    """
    with _loading(result, f"form '{kind.name}'"):
        return kind.load(result / kind.directory, device)


@contextmanager
def _loading(result: Path, what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - every runtime has its own errors, and all concern this part
        raise InputError(
            f"result '{result}': its {what} does not load: {first_line(error)}; make or fetch the result again"
        ) from None


def _fresh(kind: Kind, directory: Path, checkpoint: Checkpoint, encoded: Encoded, what: str) -> Fresh:
    device = str(checkpoint.model.device)
    inputs = check_inputs(encoded, checkpoint.tokenizer, device)
    try:
        return python_for(checkpoint, kind.name).run(directory, device, inputs)
    except ArtifactError as error:
        raise InputError(f"{what}, form '{kind.name}': {error}") from None


def _speed(
    compact: Checkpoint,
    untouched: Checkpoint | None,
    forms: Sequence[Form],
    encoded: Encoded,
    rows: DataSet | None,
    effort: Effort,
) -> tuple[list[SpeedCell], list[list[SpeedCell]]]:
    """Measure the cells of the untouched model (empty if it was not given) and of each form."""
    limits = limits_of(compact.head, compact.model.config, compact.architecture.max_tokens(compact.model.config))
    loads = workloads(encoded, compact.tokenizer, limits, own=rows is not None)
    models = [form.model for form in forms if not KINDS[form.name].for_gpu]
    if untouched is None:
        first, others = [], measure_speed(models, loads, effort)
    else:
        with stock_attention_in(untouched.model):
            first, *others = measure_speed([untouched.model, *models], loads, effort)
    cells = iter(others)
    return first, [[] if KINDS[form.name].for_gpu else next(cells) for form in forms]


def _measured(
    compact: Checkpoint, forms: Sequence[Form], cells: Sequence[list[SpeedCell]], rows: DataSet | None
) -> list[MeasuredForm]:
    """The forms on the data, if there is any, the others compared with the compact one."""
    known: dict[str, Measured] = {}
    differences: dict[str, float] = {}
    if rows is not None:
        others = {form.name: form.model for form in forms if form.name != COMPACT}
        known[COMPACT], agreements = compare_outputs(compact.model, others, compact.task, rows.samples)
        known |= {name: agreement.measured for name, agreement in agreements.items()}
        differences = {name: agreement.difference for name, agreement in agreements.items()}
    return [
        MeasuredForm(
            *(form, speed, compact.task, {"validation": rows}),
            known={"validation": known[form.name]} if form.name in known else {},
            difference=differences.get(form.name),
        )
        for form, speed in zip(forms, cells, strict=True)
    ]
