"""``axformer diff``: how two plans of one model differ."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from axformer.cli.characters import Terminal
from axformer.cli.failing import failing
from axformer.plan.diff import PlanDifference, differences
from axformer.plan.plan import PlanFile, read_plan_file


def diff(
    first: Annotated[Path, typer.Argument(help="A plan.json, or the directory of a result.")],
    second: Annotated[Path, typer.Argument(help="Another plan of the same model.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the differences as JSON.")] = False,
) -> None:
    """Compare two plans of one model, layer by layer, with the weights that were fitted to them. The exit code is 1 if they
    differ, as with diff."""
    with failing():
        plans = read_plan_file(first), read_plan_file(second)
        differing = [*differences(plans[0].plan, plans[1].plan), *_of_weights(plans, (first, second))]
    if as_json:
        print(json.dumps([vars(difference) for difference in differing], indent=1))  # noqa: T201 - this is what was asked for
    else:
        _show(plans, differing)
    raise typer.Exit(1 if differing else 0)


def _of_weights(plans: tuple[PlanFile, PlanFile], paths: tuple[Path, Path]) -> list[PlanDifference]:
    """Differences of the fitted weights, which lie beside the plans."""
    if all(plan.repair is None for plan in plans):
        return []
    from axformer.repair.storage import differences_of_fits, read_refit

    beside = (path if path.is_dir() else path.parent for path in paths)
    fits = [{} if plan.repair is None else read_refit(where) for plan, where in zip(plans, beside, strict=True)]
    return differences_of_fits(*fits)


def _show(plans: tuple[PlanFile, PlanFile], differing: list[PlanDifference]) -> None:
    console = Terminal()
    if plans[0].source.sha256 != plans[1].source.sha256:
        console.print("note: the plans were made from different weights")
    if not differing:
        console.print("The plans leave the same model.")
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    for name in ("layer", "part", "the first alone", "the second alone"):
        table.add_column(name, justify="right" if name == "layer" else "left")
    for difference in differing:
        table.add_row(str(difference.layer), difference.part, difference.first or "-", difference.second or "-")
    console.print(table)
