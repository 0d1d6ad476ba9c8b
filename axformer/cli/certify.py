"""``axformer certify``: test whether one model has lost less than some points against another."""

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from axformer.cli.disagree import MODEL
from axformer.cli.failing import failing
from axformer.cli.options import ColumnsOption, DeviceOption, columns_of
from axformer.data.columns import Columns

if TYPE_CHECKING:
    from axformer.two_models import PairVerdict

EXIT_NOT_CERTIFIED = 1


def certify(
    before: Annotated[str, typer.Argument(help=MODEL)],
    after: Annotated[str, typer.Argument(help=f"{MODEL[:-1]}, which these rows did not choose.")],
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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; what moves goes to standard error.")] = False,
) -> None:
    """Test with 95 % confidence whether a model has lost less than some points of accuracy; exit code 1 if not."""
    console = Console(highlight=False, markup=False, stderr=as_json)
    with failing():
        verdict = _certify(console, before, after, data, columns_of(columns), within_points, rows, device)
    if as_json:
        answer = {**vars(verdict), "is_certified": verdict.is_certified, "sentence": verdict.sentence}
        print(json.dumps(answer))  # noqa: T201 - this is what was asked for
    else:
        console.print(verdict.sentence, soft_wrap=True)
    if not verdict.is_certified:
        raise typer.Exit(EXIT_NOT_CERTIFIED)


def _certify(
    console: Console,
    before: str,
    after: str,
    data: str,
    columns: Columns,
    points: float,
    rows: int | None,
    device: str,
) -> "PairVerdict":
    from axformer.cli.quiet import silence_libraries
    from axformer.data.columns import DataSource
    from axformer.devices import resolve_device
    from axformer.two_models import certify_pair

    silence_libraries()
    with console.status("Asking both models"):
        return certify_pair(before, after, DataSource(data, columns), points, rows, resolve_device(device))
