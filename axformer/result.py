"""The result of pruning a model in memory: what was decided, what it is worth, and where it can be written."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from markupsafe import escape

from axformer.errors import ConfigError, DataError
from axformer.forms.kinds import KINDS
from axformer.labels import LABELS, given_labels, read_sheet, records_of, write_labels
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from axformer.reporting.deploy_table import deployables
from axformer.reporting.deployable import Deployables
from axformer.run import PruningRun
from axformer.scores.certificate import certify_sheet
from axformer.scores.labelling import forms_of, needed
from axformer.surroundings import Surroundings
from axformer.wire.answer_sheet import SHEET


@dataclass(repr=False)
class Result:
    """The result of :func:`axformer.prune`. A notebook shows its table; :meth:`save` measures and writes it."""

    plan: Plan
    trace: tuple[Trial, ...]
    model: Any
    """The compact model, in evaluation mode."""
    report: dict[str, Any] | None = None
    """The content of ``report.json``; None until it is written."""
    _run: PruningRun | None = field(default=None, compare=False)
    _surroundings: Surroundings = field(default_factory=Surroundings, compare=False)
    _forms: Sequence[str] = field(default=(), compare=False)
    _directory: Path | None = field(default=None, compare=False)
    """Where it was written last."""

    @property
    def advice(self) -> str | None:
        """What to deploy, in a sentence; None until it is written."""
        found = self._deployables()
        return None if found is None else found.sentence

    @property
    def table(self) -> list[dict[str, str]] | None:
        """Each form with its figures as text, for example for ``pandas.DataFrame``; None until it is written."""
        found = self._deployables()
        if found is None:
            return None
        head, *rows = (found.table().head, *found.table().rows)
        return [dict(zip(["form", *head[1:]], cells, strict=True)) for cells in rows]

    def save(self, directory: str | Path, forms: Sequence[str] | None = None) -> str:
        """Make the forms, check and measure them, and write everything that ``axformer prune`` writes.

        Args:
            directory: of the result; it must not exist.
            forms: names of forms; None for those of the run.

        Returns:
            The advice.

        Raises:
            ConfigError: a form has no such name.
            InputError: the directory exists, or cannot be written.
        """
        assert self._run is not None, "axformer.prune made it"
        names = self._forms if forms is None else forms
        if unknown := [name for name in names if name not in KINDS]:
            raise ConfigError(f"forms: '{unknown[0]}' is not a form; there are {', '.join(KINDS)}", "forms")
        self.report = self._run.publish(Path(directory), names, self._surroundings.on_step)
        self._directory = Path(directory)
        return self.advice or ""

    def certify(
        self,
        labels: str | Path | Sequence[Mapping[str, Any]],
        directory: str | Path,
        forms: Sequence[str] | None = None,
    ) -> "Result":
        """Make the smallest model that labels of changed answers certify, without another search, and write it.

        Args:
            labels: a file or a list with the ``id`` of rows, as ``needed.jsonl`` of the saved result has them, and ``label``.
            directory: of the new result; it must not exist.
            forms: names of forms; None for those of the run.

        Raises:
            DataError: this result was not saved, or has no unlabelled rows, or the labels are not of its changed answers.
            InputError: the directory exists, or cannot be written.
        """
        if self._run is None or self._directory is None:
            raise DataError("labels are of the changed answers of a saved result; call save(directory) first")
        sheet, source = read_sheet(self._directory), "labels"
        if isinstance(labels, str | Path):
            records, source = records_of(Path(labels)), str(labels)
        else:
            records = [dict(one) for one in labels]
        run = copy(self._run)
        run.labels, run.points = given_labels(sheet, records, source).labels, sheet.points
        upto = max(certify_sheet(sheet, form, run.labels).kept for form in forms_of(sheet))
        for _ in run.trials(self.trace, self._surroundings, upto=upto, chooses=True):
            pass
        run.repair(self._surroundings)
        better = Result(run.plan, run.trace, run.model(), None, run, self._surroundings, self._forms)
        better.save(directory, forms)
        write_labels(Path(directory, LABELS), records)
        return better

    def push_to_hub(self, repo_id: str, *, private: bool = True, token: str | None = None) -> str:
        """Put it into a repository of the model hub in one commit; it is measured first if it was not saved yet.

        Args:
            repo_id: ``organisation/name``, perhaps with ``@branch``; made if it is missing.
            private: whether a new repository is for its owner's eyes only.
            token: of the hub; None for the one that huggingface_hub knows.

        Returns:
            The address of the commit.

        Raises:
            InputError: there is no such name of a repository, or what was saved is gone.
            NotTakenError: the hub refuses or fails.
        """
        from axformer.pushing import push

        if self._directory is not None:
            return push(self._directory, repo_id, private=private, token=token)
        with TemporaryDirectory() as scratch:
            self.save(Path(scratch, "result"))
            try:
                return push(Path(scratch, "result"), repo_id, private=private, token=token)
            finally:
                self._directory = None

    def __repr__(self) -> str:
        kept = len([trial for trial in self.trace if trial.verdict == "accept"])
        told = f"{len(self.trace)} trials, {kept} accepted"
        return f"Result({told}; {self.advice or 'call save(directory) to measure and write it'}{self._labelling()})"

    def _repr_html_(self) -> str:
        """The table of forms, as notebooks show it."""
        found = self._deployables()
        if found is None:
            return f"<p>{escape(repr(self))}</p>"
        text = found.table()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in text.head)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>" for cells in text.rows)
        return f"<p><strong>{escape(found.sentence)}</strong></p><table><tr>{head}</tr>{rows}</table>"

    def _labelling(self) -> str:
        """What people could do for a better certificate; empty if there is nothing."""
        if self._directory is None or not (self._directory / SHEET).exists():
            return ""
        sheet, known = read_sheet(self._directory), self._directory / LABELS
        count = len(needed(sheet, given_labels(sheet, records_of(known), str(known)).labels))
        return f" Labels of {count:,} changed answers may certify more: axformer label {self._directory}" * (count > 0)

    def _deployables(self) -> Deployables | None:
        return None if self.report is None else deployables(self.report)
