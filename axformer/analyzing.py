"""An analysis from beginning to end: open the inputs, make the reports, write them. The model stays as it is."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from axformer.analysis.advice import PLACEHOLDER, Given, has_points
from axformer.analysis.drift import check_comparable
from axformer.analysis.inputs import AnalysisInputs, WantedReports, reports_of
from axformer.analysis.making import Making, bounded, study_of
from axformer.analysis.study import Study
from axformer.artifact import new_directory, write_texts
from axformer.config import reading_config
from axformer.data.columns import DataSource
from axformer.data.reading import read_rows, rows_of
from axformer.data.records import Records
from axformer.data.rows import Rows
from axformer.forms.memory import peak_bytes
from axformer.intake.checkpoint import from_memory, load_checkpoint
from axformer.intake.dataset import prepare, prepare_like
from axformer.intake.encoder import load_other
from axformer.plan.elements import head
from axformer.reporting.analysis_page import ANALYSIS_PAGE, analysis_page
from axformer.reporting.environment import describe
from axformer.reporting.form_reports import summary
from axformer.surroundings import Surroundings
from axformer.wire.analysis import Analysis, HeadsReport, Reports
from axformer.wire.references import shown_name

ANALYSIS_FILE = "analysis.json"
RANKING_FILE = "ranking.jsonl"
_IN_MEMORY = Given("CHECKPOINT", "DATA")
"""Inputs in the commands of an analysis of a model in memory."""


def open_analysis(
    given: Given, source: DataSource, train: DataSource | None, against: str | None, device: str
) -> AnalysisInputs:
    """Load a checkpoint, its data, and the other model.

    Raises:
        InputError: something cannot be read, or does not fit the other inputs.
    """
    config = reading_config({"max_length": given.max_length})
    rows = read_rows(source.path, source.columns)
    checkpoint = load_checkpoint(given.checkpoint, device).for_rows(rows)
    data = prepare(rows, checkpoint, config)
    more = None if train is None else prepare_like(data, read_rows(train.path, train.columns), checkpoint, config)
    other = None
    if against is not None:
        other = load_other(against, device)
        check_comparable(checkpoint, other, against)
    references = {"checkpoint": given.checkpoint, "data": given.data, "train": given.train, "against": against}
    given = replace(given, has_points=has_points(checkpoint.task))
    names = {part: shown_name(reference) for part, reference in references.items() if reference is not None}
    return AnalysisInputs(checkpoint, data, more, other, config, given, names)


def carry_out(inputs: AnalysisInputs, wanted: WantedReports, surroundings: Surroundings | None = None) -> Analysis:
    """Make the reports.

    Args:
        inputs: the checkpoint with its rows.
        wanted: what is asked for.
        surroundings: where it happens. Their directory keeps the finished reports of the same inputs, which are not made again.

    Raises:
        ConfigError: a report that is asked for lacks an input.
        InputError: the inputs do not fit it.
    """
    wanted.check()
    names, notes = reports_of(inputs, wanted)
    around = surroundings or Surroundings()
    began = around.clock()
    with tempfile.TemporaryDirectory(prefix="axformer-analysis-") as directory:
        study = study_of(inputs, wanted.bounds, wanted.seed, Path(directory), around)
        making = Making(study, inputs)
        reports = making.reports(names)
        told = [*notes, *bounded(study, inputs, reports), *making.notes]
        return analysis_of(study, inputs, reports, told, around.clock() - began)


def write_analysis(analysis: Analysis, directory: Path) -> None:
    """Write ``analysis.json``, ``analysis.html`` and, if heads were ranked, ``ranking.jsonl``. The directory appears whole.

    Raises:
        InputError: the directory is not empty.
    """
    with new_directory(directory) as draft:
        write_texts(draft, texts_of(analysis))


def texts_of(analysis: Analysis) -> dict[str, str]:
    """The contents of the files of an analysis, by name."""
    texts = {ANALYSIS_FILE: analysis.model_dump_json(indent=1) + "\n", ANALYSIS_PAGE: analysis_page(analysis)}
    if analysis.reports.heads is not None:
        texts[RANKING_FILE] = "".join(json.dumps(line) + "\n" for line in _ranking(analysis.reports.heads))
    return texts


def analyze(
    model: Any,
    tokenizer: Any,
    data: str | Path | Rows | Records,
    *,
    train: str | Path | Rows | Records | None = None,
    reports: Sequence[str] | None = None,
    rows: int | None = None,
    seed: int = 0,
) -> Analysis:
    """Analyze a model in memory, which is not changed.

    Args:
        model: a fine-tuned transformers model; see :func:`axformer.pruning.prune`.
        tokenizer: its tokenizer.
        data: the rows to measure on: a file, rows, records or a table.
        train: the rows that probes learn from; None for no probes.
        reports: names of :data:`REPORTS` without ``drift``; None for all that the inputs allow.
        rows: most rows of each data set; None for 2,000.
        seed: of all that is drawn at random.

    Raises:
        InputError: something does not fit; the message says what is wrong and what to do.
    """
    config, measured = reading_config({}), _rows(data)
    checkpoint = from_memory(model, tokenizer).for_rows(measured)
    prepared = prepare(measured, checkpoint, config)
    more = None if train is None else prepare_like(prepared, _rows(train), checkpoint, config)
    given = replace(_IN_MEMORY, train=None if train is None else PLACEHOLDER, has_points=has_points(checkpoint.task))
    inputs = AnalysisInputs(checkpoint, prepared, more, None, config, given, {"data": prepared.rows.source})
    return carry_out(inputs, WantedReports(reports, rows, seed))


def _rows(data: str | Path | Rows | Records) -> Rows:
    return read_rows(str(data)) if isinstance(data, str | Path) else data if isinstance(data, Rows) else rows_of(data)


def analysis_of(
    study: Study, inputs: AnalysisInputs, reports: Reports, notes: Sequence[str], seconds: float
) -> Analysis:
    """The finished analysis, which took so many seconds."""
    checkpoint, sizes = study.checkpoint, study.checkpoint.dimensions
    used = {"data": study.data, "train": study.train}
    return Analysis(
        names=dict(inputs.names),
        model_type=checkpoint.architecture.model_type,
        task=checkpoint.task.name,
        layers=sizes.layers,
        heads=sizes.heads,
        hidden_size=sizes.hidden_size,
        sha256=checkpoint.sha256,
        positions=study.data.positions.name,
        data={name: summary(part.data) for name, part in used.items() if part is not None},
        seed=study.seed,
        reports=reports,
        notes=tuple(notes),
        seconds=seconds,
        peak_bytes=peak_bytes(),
        environment=describe(str(checkpoint.model.device)),
    )


def _ranking(report: HeadsReport) -> list[dict[str, Any]]:
    """Every head with its score, the least important first."""
    scores = [
        (score, head(layer, index).id) for layer, row in enumerate(report.importance) for index, score in enumerate(row)
    ]
    return [{"element": name, "score": score, "rank": rank} for rank, (score, name) in enumerate(sorted(scores))]
