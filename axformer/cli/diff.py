"""``axformer diff``: what two plans of one model do unlike."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from axformer.cli.failing import failing
from axformer.plan.diff import Difference, differences
from axformer.plan.plan import PlanFile, read_plan_file


def diff(
    first: Annotated[Path, typer.Argument(help="A plan.json, or the directory of a result.")],
    second: Annotated[Path, typer.Argument(help="Another of the same model.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the differences as JSON.")] = False,
) -> None:
    """Show what two plans of one model keep unlike, layer by layer. Exit code 1 where they differ, as diff has it."""
    with failing():
        plans = read_plan_file(first), read_plan_file(second)
        found = differences(plans[0].plan, plans[1].plan)
    if as_json:
        print(json.dumps([vars(one) for one in found], indent=1))  # noqa: T201 - this is what was asked for
    else:
        _show(plans, found)
    raise typer.Exit(1 if found else 0)


def _show(plans: tuple[PlanFile, PlanFile], found: list[Difference]) -> None:
    console = Console(highlight=False)
    if plans[0].source.sha256 != plans[1].source.sha256:
        console.print("note: the plans were made from different weights")
    if not found:
        console.print("The plans leave the same model.")
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    for name in ("layer", "part", "kept by the first alone", "kept by the second alone"):
        table.add_column(name, justify="right" if name == "layer" else "left")
    for one in found:
        table.add_row(str(one.layer), one.part, one.first or "-", one.second or "-")
    console.print(table)
