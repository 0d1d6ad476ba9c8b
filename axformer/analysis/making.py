"""Makes the reports of an analysis, and says what was sampled."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from axformer.analysis.drift import drift_report
from axformer.analysis.heads import Heads, heads_report, ranked_heads
from axformer.analysis.inputs import AnalysisInputs
from axformer.analysis.labels import can_probe
from axformer.analysis.layers import layers_report
from axformer.analysis.probing import places_of
from axformer.analysis.redundancy import cka_report, clusters_report, features_report
from axformer.analysis.study import ReportBounds, Study, fitting, guessing_on, metric_of_model, represented
from axformer.errors import DataError, InputError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.encoder import Encoder
from axformer.intake.parts import shared_with
from axformer.surroundings import Surroundings
from axformer.tasks.language_models import LanguageModelling
from axformer.wire.analysis import Reports
from axformer.wire.base import Schema


def study_of(inputs: AnalysisInputs, bounds: ReportBounds, seed: int, directory: Path, around: Surroundings) -> Study:
    """The study of a checkpoint on its rows, with hidden states in a directory."""
    checkpoint, config = inputs.checkpoint, inputs.config
    is_probed = inputs.train is not None and can_probe(checkpoint.task)
    given = [data for data in (inputs.data, inputs.train if is_probed else None) if data is not None]
    sets = [fitting(data, checkpoint, config, bounds, seed) for data in given]
    data, *train = represented(checkpoint, sets, directory, around, is_probed=is_probed)
    metric, value, answers = metric_of_model(checkpoint, data.data)
    of_model = metric, value, answers, guessing_on(checkpoint, data.data, metric)
    return Study(checkpoint, config, data, train[0] if train else None, *of_model, bounds, seed, around)


class _Finished(Schema):
    """A report as it is kept, with the notes on it."""

    reports: Reports
    notes: tuple[str, ...]


class Making:
    """Makes reports; two of them share ranked heads."""

    def __init__(self, study: Study, inputs: AnalysisInputs) -> None:
        """
        Args:
            study: the model with its rows. The directory of its surroundings keeps finished reports of the same inputs.
            inputs: what was given.
        """
        self._study, self._inputs, self._kept = study, inputs, study.surroundings.directory
        self.notes: list[str] = []
        self._heads: tuple[Heads, float] | None = None

    def reports(self, names: Sequence[str]) -> Reports:
        study, given = self._study, self._inputs.given
        made: Mapping[str, Callable[[], Any]] = {
            "layers": lambda: layers_report(study, given),
            "heads": lambda: heads_report(*self._ranked(), given),
            "cka": lambda: cka_report(study, given),
            "clusters": lambda: clusters_report(study),
            "drift": self._drift,
            "features": lambda: features_report(study),
        }
        return Reports(**{name: self._once(name, made[name]) for name in names})

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        """A report, made or, if an earlier process has finished it, read."""
        if self._kept is None:
            return make()
        path = self._kept / f"{name}.json"
        if path.is_file():
            finished = _Finished.model_validate_json(path.read_bytes())
            self.notes += finished.notes
            return getattr(finished.reports, name)
        before = len(self.notes)
        report = make()
        finished = _Finished(reports=Reports(**{name: report}), notes=tuple(self.notes[before:]))
        draft = path.with_suffix(".new")
        draft.write_text(finished.model_dump_json(), encoding="utf-8")
        draft.replace(path)
        if self._study.surroundings.turn.is_over():
            self._study.surroundings.turn.wait()
        return report

    def _ranked(self) -> tuple[Heads, float]:
        if self._heads is None:
            began = time.monotonic()
            self._heads = ranked_heads(self._study, self._study.checkpoint), time.monotonic() - began
        return self._heads

    def _drift(self) -> Any:
        study, inputs = self._study, self._inputs
        assert inputs.against is not None, "drift has another model"
        other = inputs.against
        theirs = self._heads_of(other)
        own = self._ranked()[0]
        return drift_report(study, other, inputs.names["against"], (own, theirs), inputs.given)

    def _heads_of(self, other: Checkpoint | Encoder) -> Heads | None:
        """The ranked heads of the other model, also of a language model on the same texts (Chiang et al., 2020, section 5);
        None, with a note, where it has no loss on these rows."""
        if not isinstance(other, Checkpoint):
            reason = "the other model has no head"
        elif isinstance(other.task, LanguageModelling):
            try:
                return ranked_heads(self._study, other)
            except DataError as error:
                reason = f"the other model, which reads texts, cannot read these rows: {error}"
        elif other.head.auto_class is not self._study.checkpoint.head.auto_class:
            reason = "the other model has another kind of head"
        else:
            try:
                return ranked_heads(self._study, other.for_rows(self._study.data.data.rows))
            except InputError:
                reason = "these rows have labels that the other model does not know"
        self.notes.append(f"drift: no recall of important heads, since {reason}")
        return None


def bounded(study: Study, inputs: AnalysisInputs, reports: Reports) -> Iterator[str]:
    """What was sampled, and whether rows that measure are among those that probes learn from."""
    sets = (("data", inputs.data, study.data), ("train", inputs.train, study.train))
    for name, whole, used in sets:
        if whole is not None and used is not None and len(used.data.rows) < len(whole.rows):
            yield f"{name}: {len(used.data.rows):,} of {len(whole.rows):,} rows, drawn at random"
    if study.train is not None:
        learnt = {"the training rows": study.train.data.samples.encoded}
        doubt = shared_with(study.data.data.samples.encoded, learnt)
        if doubt is not None:
            yield f"data: {doubt}, since what probes reach on these rows does not hold for new ones"
    if inputs.train is not None and study.train is None:
        yield "the training rows are not used: this task has no labels to probe for"
    if study.train is not None:
        some, positions = len(places_of(study.train.states, study.bounds, study.seed)), study.train.states.positions
        if some < positions:
            yield f"probes: {some:,} of {positions:,} training positions, drawn at random"
    clusters = reports.clusters
    if clusters is not None and clusters.clustered < clusters.dimensions:
        yield f"clusters: {clusters.clustered:,} of {clusters.dimensions:,} dimensions, drawn at random"
    if reports.cka is not None and reports.cka.positions < study.data.states.positions:
        yield f"cka: {reports.cka.positions:,} of {study.data.states.positions:,} positions, drawn at random"
