"""``axformer label``: say what is right, one changed answer at a time, until the certificate stands or is out of reach.

Who labels sees the inputs and the classes, and not which model said what.
"""

import getpass
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from string import ascii_lowercase, digits
from typing import Annotated, Any

import click
import typer
from rich.console import Console

from axformer.cli.characters import Terminal
from axformer.cli.failing import failing
from axformer.cli.inputs import DeviceOption
from axformer.cli.libraries import ready
from axformer.cli.options import beside, state_of
from axformer.errors import DataError
from axformer.labels import (
    LABELS,
    add_label,
    given_labels,
    put_labels,
    read_sheet,
    record_of,
    records_of,
    take_back,
    write_labels,
)
from axformer.reporting.deployable import TITLES
from axformer.scores import labelling
from axformer.scores.certificate import certify_sheet
from axformer.wire.answer_sheet import CHOSEN_FROM, SHEET, Answer, AnswerSheet, ChangedRow
from axformer.wire.verdicts import Certificate

SKIP, UNDO, QUIT, TYPE = "s", "u", "q", "t"
_STEPS = 3
"""Most further models that are told of."""
_KEYS = digits[1:] + "".join(letter for letter in ascii_lowercase if letter not in (SKIP, UNDO, QUIT, TYPE))
"""The keys of classes, the candidates first."""


def label(
    result: Annotated[Path, typer.Argument(help="The directory of a result that was pruned with --unlabelled.")],
    within_points: Annotated[
        float | None, typer.Option(min=0.0, max=100.0, help="Points that may be lost; by default those of the run.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Who labels; the name of the account if left out.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Where a smaller model goes that the labels certify; RESULT-certified if left out."),
    ] = None,
    device: DeviceOption = "auto",
) -> None:
    """Label the changed answers of a result, until its certificate stands or is out of reach."""
    console = Terminal()
    with failing():
        sheet = read_sheet(result)
        if within_points is not None:
            sheet = sheet.model_copy(update={"points": within_points})
        file = result / LABELS
        _Labelling(sheet, file, by or getpass.getuser(), console).run()
        certified_again(console, result, None, within_points, output, device)


class _Labelling:
    """One person's labels of a sheet."""

    def __init__(self, sheet: AnswerSheet, file: Path, by: str, console: Console) -> None:
        self._sheet, self._file, self._by, self._console = sheet, file, by, console
        self._records = records_of(file)
        self._own: list[dict[str, Any]] = []  # which this person can undo
        self._labels: dict[str, Answer] = dict(given_labels(sheet, self._records, str(file)).labels)
        self._skipped: set[str] = set()

    def run(self) -> None:
        """Ask until nothing is needed, or the person stops."""
        while True:
            told = {
                *self._skipped,
                *(str(one["id"]) for one in self._records),
            }  # people who disagree are not asked again
            rows = [row for row in labelling.needed(self._sheet, self._labels) if row.id not in told]
            if not rows:
                return
            self._console.print(progress(self._sheet, self._labels), style="dim", soft_wrap=True)
            try:
                answer = self._asked(rows[0])
            except EOFError:
                return
            if answer == QUIT:
                return
            self._take(rows[0], answer)

    def _take(self, row: ChangedRow, answer: Any) -> None:
        if answer == UNDO:
            if self._own:
                record = self._own.pop()
                self._records.remove(record)
                self._labels.pop(record["id"], None)
                take_back(self._file, record)
            self._skipped.clear()
        elif answer == SKIP:
            self._skipped.add(row.id)
        else:
            self._labels[row.id] = answer
            record = record_of(self._sheet, row.id, answer, self._by)
            self._records.append(record)
            self._own.append(record)
            add_label(self._file, record)

    def _asked(self, row: ChangedRow) -> Any:
        """The label of a row, or one of the keys that mean something else."""
        if isinstance(row.before, float):
            self._show(row.inputs)
            return self._number(row)
        if isinstance(row.before, str):
            self._show(row.inputs)
            names = labelling.choices_of(self._sheet, row)
            answer = self._choice(row, range(len(names) - 1), names)
            return names[answer] if isinstance(answer, int) else answer
        if isinstance(row.before, int):
            self._show(row.inputs)
            return self._choice(row, [row.before, *self._answers(row)], labelling.choices_of(self._sheet, row))
        if self._sheet.task == "multi_label_classification":
            return self._several(row)
        tags = list(row.before)
        words = next(iter(row.inputs.values()))
        words = words.split() if isinstance(words, str) else words
        others: list[Any] = self._answers(row)
        for place in labelling.asked_words(self._sheet, row):
            self._show({"": " ".join(f"[{word}]" if at == place else word for at, word in enumerate(words))})
            answer = self._choice(row, [tags[place], *(other[place] for other in others)], self._sheet.classes)
            if isinstance(answer, str):
                return answer
            tags[place] = answer
        return tags

    def _answers(self, row: ChangedRow) -> list[Any]:
        return [model.answers[row.place] for model in self._sheet.models if row.place in model.answers]

    def _show(self, inputs: Mapping[str, Any]) -> None:
        self._console.rule()
        for name, value in inputs.items():
            if name not in CHOSEN_FROM or self._sheet.classes:
                text = (
                    value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, list) else value
                )
                self._console.print(f"{name}: {text}" if len(inputs) > 1 else str(text), soft_wrap=True)

    def _choice(self, row: ChangedRow, candidates: Sequence[int], names: Sequence[str]) -> Any:
        """One of the classes, of which those that models answered come first, in an order that says nothing."""
        first = list(dict.fromkeys(candidates))
        Random(row.id).shuffle(first)  # noqa: S311 - an order, no secret
        every = [*first, *(index for index in range(len(names)) if index not in first)]
        keys = dict(zip(_KEYS, every, strict=False))
        for key, index in keys.items():
            self._console.print(f"  {key}  {names[index]}", soft_wrap=True)
        more = f", {TYPE} type a name" if len(every) > len(keys) else ""
        while True:
            key = _key(self._console, f"[{SKIP} skip, {UNDO} undo, {QUIT} stop{more}] ")
            if key in keys:
                return keys[key]
            if key == TYPE and more:
                return self._typed(row)
            if key in (SKIP, UNDO, QUIT):
                return key

    def _several(self, row: ChangedRow) -> Any:
        self._show(row.inputs)
        for index, name in enumerate(self._sheet.classes, 1):
            self._console.print(f"  {index}  {name}")
        while True:
            line = _line(
                self._console, f"[numbers of all that apply, 0 for none; {SKIP} skip, {UNDO} undo, {QUIT} stop] "
            )
            if line in (SKIP, UNDO, QUIT):
                return line
            given = line.replace(",", " ").split()
            if given and all(one.isdecimal() and int(one) <= len(self._sheet.classes) for one in given):
                return [int(str(index) in given) for index in range(1, len(self._sheet.classes) + 1)]

    def _number(self, row: ChangedRow) -> Any:
        least, most = labelling.range_of(self._sheet)
        return self._typed(
            row, f"[a number, as from {least:.3g} to {most:.3g}; {SKIP} skip, {UNDO} undo, {QUIT} stop] "
        )

    def _typed(self, row: ChangedRow, prompt: str = "name: ") -> Any:
        while True:
            line = _line(self._console, prompt)
            if isinstance(row.before, float) and line in (SKIP, UNDO, QUIT):
                return line
            try:
                return labelling.label_of(self._sheet, row, line)
            except DataError as error:
                self._console.print(str(error))


def _key(console: Console, prompt: str) -> str:
    """One key; a line where no person types."""
    if not sys.stdin.isatty():
        return _line(console, prompt)
    console.print(prompt, end="")
    key = click.getchar().lower()
    console.print(key)
    return key


def _line(console: Console, prompt: str) -> str:
    return console.input(prompt, markup=False).strip()


def progress(sheet: AnswerSheet, labels: labelling.Labels) -> str:
    """How far each form is certified, and how many labels decide about its next models at most."""
    told, within = [], f"{sheet.points:g} point{'' if sheet.points == 1 else 's'}"
    for form in labelling.forms_of(sheet):
        standing = labelling.standing_of(sheet, form, labels)
        kept = standing.kept
        now = "nothing smaller is" if kept is None else f"{kept.times:.2f} times fewer operations are"
        steps = [
            f"{model.times:.2f} with at most {count:,} labels"
            for model, count in labelling.most_labels(sheet, form, labels)
        ]
        further = (
            "the next model is out of reach" if standing.is_futile else ", ".join(steps[:_STEPS]) or "no model is left"
        )
        told.append(f"{TITLES.get(form, form)}: {now} certified within {within}; {further}.")
    return "\n".join(told)


def show_labelling(console: Console, result: Path) -> None:
    """Print how many labels would certify more, where a result has rows without labels."""
    if (result / SHEET).exists():
        sheet = read_sheet(result)
        console.print(progress(sheet, {}), soft_wrap=True)
        if labelling.needed(sheet, {}):
            console.print(f"Labels of changed answers certify more: axformer label {result}", soft_wrap=True)


def certified_again(
    console: Console, result: Path, labels: Path | None, points: float | None, output: Path | None, device: str
) -> tuple[Certificate, bool]:
    """The certificate of a result with the labels that are known; where it is of a smaller model, that one is written.

    Args:
        labels: a file with further labels, which are kept in the result; None for those that it has.

    Returns:
        The certificate of the last form, and whether it holds for the model that is handed out: that of the result, or the one
        that is written.
    """
    from axformer.wire.report import Report

    sheet = read_sheet(result)
    if points is not None:
        sheet = sheet.model_copy(update={"points": points})
    records = records_of(result / LABELS)
    if labels is not None:
        more = records_of(labels)
        given_labels(sheet, more, str(labels))  # raises before anything is written
        records = put_labels(result / LABELS, more)
    kept = given_labels(sheet, records, str(labels or result / LABELS))
    for note in kept.notes:
        console.print(f"note: {note}", soft_wrap=True)
    certificates = {form: certify_sheet(sheet, form, kept.labels) for form in labelling.forms_of(sheet)}
    for form, certificate in certificates.items():
        console.print(f"{TITLES.get(form, form)}: {certificate.sentence}", soft_wrap=True)
    console.print(progress(sheet, kept.labels), soft_wrap=True)
    report = Report.model_validate_json((result / "report.json").read_bytes())
    times = {point.seq: point.estimated_speedup for point in report.path}
    now = next(point.seq for point in report.path if point.kept)
    last = certificates[form]
    if any(times[certificate.kept] > times[now] for certificate in certificates.values()):
        upto = max(certificate.kept for certificate in certificates.values())
        directory = output or beside(str(result), "certified")
        if _made_again(console, result, kept.labels, sheet.points, upto, directory, device):
            return last, last.p_value is not None
    held = next((one.seq for one in report.forms if one.name == form and one.seq is not None), now)
    if last.p_value is None or times[last.kept] >= times[held]:
        return last, last.p_value is not None and not last.before_training
    told = f"That is the model of trial {last.kept}; the result has that of trial {held}, which is not certified."
    return last.model_copy(update={"sentence": f"{last.sentence} {told}"}), False


def _made_again(
    console: Console, result: Path, labels: labelling.Labels, points: float, upto: int, output: Path, device: str
) -> bool:
    """Write the result anew with the models that the labels certify, none beyond trial ``upto``, without another search. False
    if that cannot be done here."""
    from axformer.cli.display import showing
    from axformer.plan.trial import Trial
    from axformer.publishing import RUN
    from axformer.run import PruningRun
    from axformer.wire.run import IN_MEMORY, Run

    asked = Run.model_validate_json((result / RUN).read_bytes())
    if asked.checkpoint.uri == IN_MEMORY:
        call = f"result.certify('{result / LABELS}', DIRECTORY)"
        console.print(f"The model was given in memory: in Python, {call} makes the certified one.", soft_wrap=True)
        return False
    trace = [Trial.model_validate_json(line) for line in (result / "trace.jsonl").read_text("utf-8").splitlines()]
    with showing(console, "Making the model that is certified", state_of(output)) as around:
        run = PruningRun.open(asked, device=ready(device, output), surroundings=around)
        run.labels, run.points = labels, points
        for _ in run.trials(trace, around, upto=upto, chooses=True):
            pass
        run.publish(output, asked.forms, around.on_step)
    write_labels(output / LABELS, records_of(result / LABELS))
    console.print(f"In {output}/", soft_wrap=True)
    return True
