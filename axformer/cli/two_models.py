"""``axformer disagree``, ``axformer certify`` and ``axformer label``: which rows need labels, and what they certify."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from axformer.cli.characters import Terminal
from axformer.cli.failing import failing
from axformer.cli.libraries import ready
from axformer.cli.options import ColumnsOption, DeviceOption, columns_of
from axformer.data.columns import DataSource
from axformer.errors import ConfigError, InputError

if TYPE_CHECKING:
    from axformer.data.rows import Rows

EXIT_NOT_CERTIFIED = 1
_MODEL = "A checkpoint, or the directory of a result."
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON; what moves goes to standard error.")]
LabelsOption = Annotated[
    Path | None, typer.Option(help="A file with the columns id and label, for some of the rows whose answers changed.")
]


def disagree(
    before: Annotated[str, typer.Argument(help=_MODEL)],
    after: Annotated[str, typer.Argument(help=f"{_MODEL[:-1]}, made from the first.")],
    data: Annotated[str, typer.Option(help="Rows, which need no labels.")],
    output: Annotated[Path, typer.Option(help="The .jsonl for the rows on which both differ; it must not exist.")],
    columns: ColumnsOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Write the rows on which two models answer differently: only these need labels for axformer certify."""
    console = Terminal(stderr=as_json)
    with failing():
        _check_new(output)
        source, computing = DataSource(data, columns_of(columns)), ready(device)
        from axformer.two_models import disagreements

        with console.status("Asking both models"):
            rows, every = disagreements(before, after, source, computing)
        output.write_text(_lines(rows), encoding="utf-8")
    if as_json:
        print(json.dumps({"disagree": len(rows), "rows": every}))  # noqa: T201 - this is what was asked for
        return
    console.print(
        f"{len(rows):,} of {every:,} rows need a label; then: axformer certify {before} {after} --data {output} "
        f"--rows {every} --within-points 1",
        soft_wrap=True,
    )


ModelsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="The directory of a result with unlabelled rows; or two models, checkpoints or results, the second of which "
        "these rows did not choose.",
        show_default=False,
    ),
]
AnswersOption = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        metavar="OLD NEW",
        help="In the place of models, their answers to the same rows: files with the columns id and answer, or "
        "samples that lm-eval logged.",
        show_default=False,
    ),
]
PointsOption = Annotated[
    float | None,
    typer.Option(
        min=0.0, max=100.0, help="Hundredths of the share of right answers that may be lost.", show_default="1"
    ),
]
SummaryOption = Annotated[
    Path | None,
    typer.Option(envvar="GITHUB_STEP_SUMMARY", show_envvar=True, help="A Markdown file to which the verdict is added."),
]


def certify(
    models: ModelsArgument = None,
    answers: AnswersOption = None,
    data: Annotated[
        str | None, typer.Option(help="Of two models: rows with labels, among them all on which both differ.")
    ] = None,
    labels: LabelsOption = None,
    within_points: PointsOption = None,
    rows: Annotated[
        int | None,
        typer.Option(help="With --data: how many rows there are, with those left out on which both answer alike."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="With --answers: a column of the first file; each of its groups is certified.")
    ] = None,
    needed: Annotated[
        Path | None,
        typer.Option(help="With --answers: the .jsonl for the rows whose labels are still needed; it must not exist."),
    ] = None,
    summary: SummaryOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Of a result: where a smaller model goes that the labels certify; RESULT-certified if left out."
        ),
    ] = None,
    columns: ColumnsOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Test with 95 % confidence whether a model has lost less than some points of accuracy; exit code 1 if not."""
    console = Terminal(stderr=as_json)
    points = 1.0 if within_points is None else within_points
    with failing():
        match models or [], answers, data:
            case [], (_, _), None:
                told = _of_answers(answers, labels, points, by, needed)
            case [result], None, None:
                told = _of_result(console, Path(result), labels, within_points, output, device)
            case [before, after], None, str():
                told = _of_models(console, before, after, DataSource(data, columns_of(columns)), points, rows, device)
            case _:
                raise ConfigError("give the directory of a result, two models with --data, or --answers OLD NEW")
        if summary is not None:
            with summary.open("a", encoding="utf-8") as file:
                file.write("".join(f"- {line}\n" for line in told.sentence.splitlines()))
    if as_json:
        print(json.dumps(told.fields))  # noqa: T201 - this is what was asked for
    else:
        console.print(told.sentence, soft_wrap=True)
    if not told.is_certified:
        raise typer.Exit(EXIT_NOT_CERTIFIED)


class _Told(NamedTuple):
    """A verdict, as it is printed."""

    sentence: str
    is_certified: bool
    fields: dict[str, Any]


def _of_answers(
    answers: tuple[Path, Path], labels: Path | None, points: float, by: str | None, needed: Path | None
) -> _Told:
    """The verdict on two files of answers; the rows whose labels are needed are written."""
    from axformer.gate import certify_files

    if needed is not None:
        _check_new(needed)
    found, first = certify_files(*answers, labels, points, by)
    if needed is not None:
        wanted = [
            {name: values[row] for name, values in first.table.items() if name not in _ANSWER_COLUMNS}
            | {"id": first.ids[row]}
            for row in found.needed
        ]
        needed.write_text(
            "".join(json.dumps(one, ensure_ascii=False, default=str) + "\n" for one in wanted), encoding="utf-8"
        )
    parts = {"whole": asdict(found.whole), "groups": [asdict(group) for group in found.groups]}
    fields = {**parts, "is_certified": found.is_certified, "needed": found.needed, "sentence": found.sentence}
    return _Told(found.sentence, found.is_certified, fields)


def _of_result(
    console: Terminal, result: Path, labels: Path | None, points: float | None, output: Path | None, device: str
) -> _Told:
    from axformer.cli.label import certified_again

    again = certified_again(console, result, labels, points, output, device)
    return _Told(again.sentence, again.p_value is not None, again.model_dump(mode="json"))


def _of_models(
    console: Terminal, before: str, after: str, source: DataSource, points: float, rows: int | None, device: str
) -> _Told:
    computing = ready(device)
    from axformer.two_models import certify_pair

    with console.status("Asking both models"):
        pair = certify_pair(before, after, source, points, rows, computing)
    fields = {**asdict(pair), "is_certified": pair.is_certified, "sentence": pair.sentence}
    return _Told(pair.sentence, pair.is_certified, fields)


_ANSWER_COLUMNS = ("answer", "prediction", "predicted", "pred")
"""What nobody who labels should see."""


def _check_new(file: Path) -> None:
    if file.exists():
        raise InputError(f"output '{file}' exists; choose another file or remove it")


def _lines(rows: "Rows") -> str:
    """The rows as JSON, one per line."""
    records = (dict(zip(rows.table, values, strict=True)) for values in zip(*rows.table.values(), strict=True))
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
