"""``axformer answers`` and ``axformer certify``: the answers of a model, and what few labels certify of others."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from axformer.cli.characters import Terminal
from axformer.cli.failing import failing
from axformer.cli.inputs import ColumnsOption, DeviceOption, MaxLengthOption, columns_of
from axformer.cli.libraries import ready, without_collection
from axformer.data.columns import DataSource
from axformer.errors import ConfigError, InputError
from axformer.forms.kinds import COMPACT

EXIT_NOT_CERTIFIED = 1
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON; what moves goes to standard error.")]
_ANSWER_COLUMNS = ("answer", "prediction", "predicted", "pred")
"""What nobody who labels should see."""


def answers(
    model: Annotated[str, typer.Argument(help="A checkpoint, or the directory of a result.")],
    data: Annotated[str, typer.Option(help="Rows, which need no labels.")],
    output: Annotated[Path, typer.Option(help="The .jsonl for the rows with their answers; it must not exist.")],
    form: Annotated[str, typer.Option(help="Of a result, the form that answers, for example onnx_int8.")] = COMPACT,
    max_length: MaxLengthOption = None,
    columns: ColumnsOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Write the answers of a model to the rows of a file, for axformer certify --answers."""
    console = Terminal(stderr=as_json)
    with failing():
        _check_new(output)
        source, computing = DataSource(data, columns_of(columns)), ready(device)
        from axformer.answering import answers_to

        with console.status("Asking the model"):
            found = answers_to(model, source, computing, form, max_length)
        _write(output, found)
    told = f"{len(found):,} answers; of two models: axformer certify --answers OLD NEW"
    _say(console, told, {"rows": len(found)}, as_json=as_json)


def certify(
    result: Annotated[
        Path | None, typer.Argument(help="The directory of a result with unlabelled rows.", show_default=False)
    ] = None,
    answers: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="OLD NEW",
            help="In the place of a result, the answers of two models to the same rows, which did not choose the second: files "
            "with the columns id and answer, as axformer answers writes them, or samples that lm-eval logged.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="A file with the columns id and label, for some of the rows whose answers changed."),
    ] = None,
    within_points: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=100.0, help="Hundredths of the share of right answers that may be lost.", show_default="1"
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="With --answers: a column of the first file; each of its groups is certified.")
    ] = None,
    needed: Annotated[
        Path | None,
        typer.Option(help="With --answers: the .jsonl for the rows whose labels are still needed; it must not exist."),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            envvar="GITHUB_STEP_SUMMARY", show_envvar=True, help="A Markdown file to which the verdict is added."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Of a result: where a smaller model goes that the labels certify; RESULT-certified if left out."
        ),
    ] = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Test with 95 % confidence whether a model has lost less than some points of accuracy; exit code 1 if not."""
    console = Terminal(stderr=as_json)
    with failing():
        match result, answers:
            case None, (_, _):
                _check_unused("a result", output=output)
                told = _of_answers(answers, labels, 1.0 if within_points is None else within_points, by, needed)
            case Path(), None:
                _check_unused("--answers", by=by, needed=needed)
                told = _of_result(console, result, labels, within_points, output, device)
            case _:
                raise ConfigError("give the directory of a result, or --answers OLD NEW")
        if summary is not None:
            told.add_to(summary)
    _say(console, told.sentence, told.fields, as_json=as_json)
    if not told.is_certified:
        raise typer.Exit(EXIT_NOT_CERTIFIED)


class _Told(NamedTuple):
    """A verdict, as it is printed."""

    sentence: str
    is_certified: bool
    fields: dict[str, Any]

    def add_to(self, summary: Path) -> None:
        """Add the verdict to a Markdown file."""
        with summary.open("a", encoding="utf-8") as file:
            file.write("".join(f"- {line}\n" for line in self.sentence.splitlines()))


def _say(console: Terminal, sentence: str, fields: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(fields))  # noqa: T201 - this is what was asked for
    else:
        console.print(sentence, soft_wrap=True)


def _of_answers(
    answers: tuple[Path, Path], labels: Path | None, points: float, by: str | None, needed: Path | None
) -> _Told:
    """The verdict on two files of answers; the rows whose labels are needed are written."""
    if needed is not None:
        _check_new(needed)
    with without_collection():
        from axformer.gate import certify_files

        found, first = certify_files(*answers, labels, points, by)
    if needed is not None:
        shown = {name: values for name, values in first.table.items() if name not in _ANSWER_COLUMNS}
        _write(
            needed,
            ({name: values[row] for name, values in shown.items()} | {"id": first.ids[row]} for row in found.needed),
        )
    parts = {"whole": asdict(found.whole), "groups": [asdict(group) for group in found.groups]}
    waiting = [first.ids[row] for row in found.needed]
    fields = {**parts, "is_certified": found.is_certified, "needed": waiting, "sentence": found.sentence}
    return _Told(found.sentence, found.is_certified, fields)


def _of_result(
    console: Terminal, result: Path, labels: Path | None, points: float | None, output: Path | None, device: str
) -> _Told:
    from axformer.cli.label import certified_again

    again, is_certified = certified_again(console, result, labels, points, output, device)
    return _Told(again.sentence, is_certified, again.model_dump(mode="json") | {"is_certified": is_certified})


def _check_unused(place: str, **options: object) -> None:
    """Check that no option is given that goes with something else."""
    given = [f"--{name}" for name, value in options.items() if value is not None]
    if given:
        raise ConfigError(f"{' and '.join(given)}: only with {place}; leave it out")


def _check_new(file: Path) -> None:
    if file.exists():
        raise InputError(f"output '{file}' exists; choose another file or remove it")


def _write(file: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records as JSON, one per line."""
    file.write_text(
        "".join(json.dumps(one, ensure_ascii=False, default=str) + "\n" for one in records), encoding="utf-8"
    )
