"""An analysis in the confined process: its inputs, with their owner's names, and its reports."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from axformer import __version__, analyzing
from axformer.analysis.advice import Given
from axformer.analysis.inputs import AnalysisInputs, WantedReports
from axformer.data.columns import Columns
from axformer.devices import resolve_device
from axformer.opening import source_of
from axformer.surroundings import Surroundings
from axformer.wire.analysis import Analysis
from worker.sandbox.messages import AnalysisOrder, JobOrder


def open_inputs(order: JobOrder) -> AnalysisInputs:
    """Load the models and the rows of an analysis. Its commands name them as the job does.

    Raises:
        InputError: something cannot be read, or does not fit the other inputs.
    """
    names, said, run = order.names, _asked(order).references, _asked(order).run
    given = Given(run.checkpoint.uri, run.validation.uri, max_length=run.max_length)
    more = None if run.train is None else source_of(run.train)
    against = None if run.against is None else run.against.uri
    device = resolve_device(order.device)
    inputs = analyzing.open_analysis(given, source_of(run.validation), more, against, device)
    told = replace(
        inputs.given,
        checkpoint=said["checkpoint"],
        data=said["validation"],
        train=said.get("train"),
        columns=_words(source_of(run.validation).columns),
        on_service=True,
    )
    parts = {"checkpoint": "checkpoint", "data": "validation", "train": "train", "against": "against"}
    return replace(inputs, given=told, names={name: names[part] for name, part in parts.items() if part in names})


def first_look(inputs: AnalysisInputs) -> str:
    """One line on the rows."""
    train = "" if inputs.train is None else f", {len(inputs.train.rows):,} training rows"
    return f"{len(inputs.data.rows):,} rows{train}, {inputs.checkpoint.task.name.replace('_', ' ')}"


def carry_out(order: JobOrder, inputs: AnalysisInputs, around: Surroundings) -> Analysis:
    """Make the reports; those that an earlier process has finished are taken over."""
    run = _asked(order).run
    around = replace(around, directory=_kept_reports(order))
    return analyzing.carry_out(inputs, WantedReports(run.reports, run.rows), around)


def _kept_reports(order: JobOrder) -> Path:
    """The directory for finished reports, whose name is that of everything that decides what they say."""
    analysis = _asked(order)
    columns = {part: getattr(source, "columns", None) for part, source in analysis.run.sources().items()}
    asked = order.model_dump(mode="json", include={"names"}) | {
        "columns": {part: None if one is None else one.model_dump() for part, one in columns.items()},
        "analysis": analysis.model_dump(mode="json", include={"references", "digests"}),
        "rows": analysis.run.rows,
        "max_length": analysis.run.max_length,
    }
    told = json.dumps([__version__, asked], sort_keys=True)
    directory = Path(order.state) / f"reports-{hashlib.sha256(told.encode()).hexdigest()}"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _asked(order: JobOrder) -> AnalysisOrder:
    assert order.analysis is not None, "an analysis says what is asked for"
    return order.analysis


def _words(columns: Columns) -> str | None:
    """Columns as an option of a command."""
    renamed = columns.model_dump(exclude_defaults=True)
    return ",".join(f"{ours}={theirs}" for ours, theirs in renamed.items()) or None
