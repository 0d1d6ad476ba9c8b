"""A run in each order: six results side by side, and the one that is chosen."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from axformer.cli.main import app
from axformer.cli.orders import ORDERS, _best
from axformer.config import Order, make_config
from axformer.errors import ConfigError
from axformer.methods.axformer.ordering import block_order
from axformer.plan.elements import Dimensions

KNOBS = ("--preset", "paper", "--forms", "compact", "--set", "attention_top_k=3", "--set", "neuron_group_size=24")


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["orders", *map(str, arguments)])


def test_the_orders_are_all_permutations_of_the_regions() -> None:
    dimensions = Dimensions(layers=6, heads=2, hidden_size=4, intermediate_size=8)
    queues = {tuple(block_order(dimensions, make_config("paper", {"order": order}))) for order in ORDERS}  # type: ignore[arg-type]
    assert len(queues) == len(ORDERS) == 6
    assert set(ORDERS) == {order.value for order in Order if "-" in order}


def test_a_search_in_one_run_is_refused_and_names_the_command() -> None:
    with pytest.raises(
        ConfigError, match=r"order=search is of an earlier version and no longer there: .*axformer orders"
    ):
        make_config("paper", {"order": "search"})


@pytest.mark.slow
def test_each_order_has_its_result_and_the_best_is_named(tmp_path: Path, checkpoint: Path, data: Path) -> None:
    result = run(checkpoint, "--data", data, *KNOBS, "--output", tmp_path / "orders")
    assert result.exit_code == 0, result.output
    reports = {order: json.loads((tmp_path / "orders" / order / "report.json").read_text()) for order in ORDERS}
    assert {order: report["config"]["order"] for order, report in reports.items()} == {one: one for one in ORDERS}
    losses = {order: next(one["loss"] for one in report["path"] if one["kept"]) for order, report in reports.items()}
    best = min(losses, key=lambda order: losses[order])
    assert f"Best by validation loss, {losses[best]:.4f}: {best}, in {tmp_path / 'orders' / best}/" in result.output
    again = run(checkpoint, "--data", data, *KNOBS, "--output", tmp_path / "orders")
    assert again.exit_code == 0
    assert "trial 1 " not in again.output, "results that lie there are not made again"
    printed = run(checkpoint, "--data", data, *KNOBS, "--output", tmp_path / "orders", "--json")
    assert [one["report"] for one in json.loads(printed.stdout)] == list(reports.values())
    assert f": {best}, in " in printed.stderr


def test_what_cannot_be_run_is_told_before_the_first_order(tmp_path: Path, checkpoint: Path, data: Path) -> None:
    ordered = run(checkpoint, "--data", data, "--set", "order=random", "--output", tmp_path / "orders")
    assert (ordered.exit_code, "leave order out" in ordered.stderr) == (2, True)
    unknown = run(checkpoint, "--data", data, "--set", "margin=2", "--output", tmp_path / "orders")
    assert (unknown.exit_code, "knob 'margin' is unknown" in unknown.stderr) == (2, True)
    other = run(checkpoint, "--data", data, "--fast", "--output", tmp_path / "orders")
    assert (other.exit_code, "No such option" in other.stderr) == (2, True)


def report(loss: float, operations: int = 1, p_value: float | None = None, **knobs: Any) -> dict[str, Any]:
    config = {"within_points": None, "tolerance": None, "confirm": 0.3} | knobs
    point = {"kept": True, "loss": 9.0, "confirming": {"loss": loss}}
    sizes = {"operations": operations, "parameters": operations}
    certificate = None if config["within_points"] is None else {"p_value": p_value}
    return {"config": config, "target": None, "path": [point], "pruned": sizes, "certificate": certificate}


def test_the_best_is_the_cheapest_certified_the_smallest_or_the_one_of_least_loss() -> None:
    out = Path("out")
    assert _best({"a": report(0.5), "b": report(0.4), "c": report(0.4)}, out).endswith("0.4000: b, in out/b/")
    smaller = {"a": report(0.5, 2, tolerance=0.1), "b": report(0.4, 3, tolerance=0.1)}
    assert ": a, in out/a/" in _best(smaller, out)
    missed = smaller | {"a": smaller["a"] | {"target": {"reached": False}}}
    assert ": b, in out/b/" in _best(missed, out)
    certified = {"a": report(0.5, 3, 0.01, within_points=1), "b": report(0.6, 2, 0.04, within_points=1)}
    assert _best(certified, out).startswith("Cheapest of the certified models: b, in out/b/. Each certificate")
    none = {"a": report(0.5, 3, within_points=1), "b": report(0.6, 3, within_points=1)}
    assert _best(none, out) == "In no order a smaller model was certified."
