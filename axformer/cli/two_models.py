"""``axformer disagree`` and ``axformer certify``: find the rows that need labels, and test on them what a model has lost."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from axformer.cli.failing import failing
from axformer.cli.libraries import ready
from axformer.cli.options import ColumnsOption, DeviceOption, columns_of
from axformer.data.columns import DataSource
from axformer.errors import InputError

if TYPE_CHECKING:
    from axformer.data.rows import Rows

EXIT_NOT_CERTIFIED = 1
_MODEL = "A checkpoint, or the directory of a result."
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON; what moves goes to standard error.")]


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
    console = Console(highlight=False, markup=False, stderr=as_json)
    with failing():
        if output.exists():
            raise InputError(f"output '{output}' exists; choose another file or remove it")
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


def certify(
    before: Annotated[str, typer.Argument(help=_MODEL)],
    after: Annotated[str, typer.Argument(help=f"{_MODEL[:-1]}, which these rows did not choose.")],
    data: Annotated[str, typer.Option(help="Rows with labels, among them all on which both models differ.")],
    within_points: Annotated[
        float, typer.Option(min=0.0, max=100.0, help="Hundredths of the share of right answers that may be lost.")
    ],
    rows: Annotated[
        int | None,
        typer.Option(help="How many rows there are, with those left out on which both models answer alike."),
    ] = None,
    columns: ColumnsOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Test with 95 % confidence whether a model has lost less than some points of accuracy; exit code 1 if not."""
    console = Console(highlight=False, markup=False, stderr=as_json)
    with failing():
        source, computing = DataSource(data, columns_of(columns)), ready(device)
        from axformer.two_models import certify_pair

        with console.status("Asking both models"):
            verdict = certify_pair(before, after, source, within_points, rows, computing)
    if as_json:
        answer = {**vars(verdict), "is_certified": verdict.is_certified, "sentence": verdict.sentence}
        print(json.dumps(answer))  # noqa: T201 - this is what was asked for
    else:
        console.print(verdict.sentence, soft_wrap=True)
    if not verdict.is_certified:
        raise typer.Exit(EXIT_NOT_CERTIFIED)


def _lines(rows: "Rows") -> str:
    """The rows as JSON, one per line."""
    records = (dict(zip(rows.table, values, strict=True)) for values in zip(*rows.table.values(), strict=True))
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
