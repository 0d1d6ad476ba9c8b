"""``axformer orders``: a run in each order of the three regions, compared (appendix A of the AxFormer paper)."""

import json
import sys
from contextlib import nullcontext, redirect_stdout
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from axformer.cli.compare import compare
from axformer.cli.failing import EXIT_MISSED, failing
from axformer.cli.remote import notes
from axformer.cli.remote import output as screen
from axformer.errors import ConfigError

ORDERS = tuple("-".join(regions) for regions in permutations(("top", "middle", "bottom")))
"""All values of the knob ``order`` that name the regions, the default first."""
orders = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@orders.command("orders", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def _orders(
    context: typer.Context,
    output: Annotated[Path, typer.Option(help="Directory for the results, one below it for each order.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print what compare prints as JSON.")] = False,
) -> None:
    """Prune a model once in each order of its top, middle and bottom layers, and compare the results.

    CHECKPOINT and every other option are those of axformer prune. A result that lies there already is not made again.
    """
    results = {order: output / order for order in ORDERS}
    with failing():
        if any(argument.startswith("order=") for argument in context.args):
            raise ConfigError("the order is what differs between these runs; leave order out")
        for order, directory in results.items():
            if not (directory / "report.json").exists():
                with redirect_stdout(sys.stderr) if as_json else nullcontext():
                    _prune(order, directory, context.args)
    compare([str(directory) for directory in results.values()], as_json=as_json)
    reports = {order: _report(directory) for order, directory in results.items()}
    (notes() if as_json else screen()).print(_best(reports, output), soft_wrap=True)


def _prune(order: str, directory: Path, given: list[str]) -> None:
    """Make a run as ``axformer prune`` does; one that misses its target is a result, too."""
    from axformer.cli.main import app

    screen().print(f"order {order}", style="bold")
    directory.parent.mkdir(parents=True, exist_ok=True)
    arguments = ["prune", *given, "--set", f"order={order}", "--output", str(directory)]
    code = get_command(app).main(arguments, standalone_mode=False)
    if code not in (None, 0, EXIT_MISSED):
        raise typer.Exit(code)


def _report(directory: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((directory / "report.json").read_text(encoding="utf-8"))
    return report


def _best(reports: dict[str, dict[str, Any]], output: Path) -> str:
    """Name the result that an order is chosen by: those that reached their target first, then the cheapest certified model with
    ``within_points``, or the smallest if the loss may rise, then the lowest loss on the rows that choose."""

    def rank(order: str) -> tuple[float, ...]:
        report = reports[order]
        config, target = report["config"], report["target"]
        size = 0
        if config["within_points"] is not None:
            size = report["pruned"]["operations"]
        elif config["tolerance"] is not None:
            size = report["pruned"]["parameters"]
        return target is not None and not target["reached"], size, _loss(report)

    best = min(reports, key=rank)
    report = reports[best]
    if report["certificate"] is not None and report["certificate"]["p_value"] is None:
        return "In no order a smaller model was certified."
    if report["config"]["within_points"] is None:
        data = "confirming" if report["config"]["confirm"] else "validation"
        return f"Best by {data} loss, {_loss(report):.4f}: {best}, in {output / best}/"
    return (
        f"Cheapest of the certified models: {best}, in {output / best}/. Each certificate is of one run; the cheapest of "
        f"{len(reports)} was chosen by the same rows, so certify it on others (axformer answers, axformer certify --answers)"
    )


def _loss(report: dict[str, Any]) -> float:
    """The loss of the kept model on the rows that confirm, or on those that decided."""
    kept = next(point for point in report["path"] if point["kept"])
    return float((kept["confirming"] or kept)["loss"])
