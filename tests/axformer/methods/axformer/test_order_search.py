"""A search of orders is six single passes, and its result is that of the best of them."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import axformer
from axformer.cli.display import display_for, measured_by, names_of_passes
from axformer.cli.main import app
from axformer.config import Order, PassConfig, make_config
from axformer.data.reading import rows_of
from axformer.errors import ConfigError, PlanError
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import DataSource, prepare
from axformer.methods.axformer.ordering import block_order
from axformer.methods.axformer.orders import SEARCHED_ORDERS, opening_of, pass_configs
from axformer.methods.axformer.progress import PassMeter, longest_trace
from axformer.methods.outline import progress_of
from axformer.methods.passes import best_of
from axformer.methods.traces import final_loss, passes_in
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan, parse_plan_file
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.run import PruningRun
from tests.tiny_models import tiny_model, tiny_rows, tiny_tokenizer

SEARCHED_KNOBS = {"attention_top_k": 3, "order": "search"}
SEARCH = make_config("paper", SEARCHED_KNOBS)
LATER: list[dict[str, object]] = [
    {"seq": 1, "phase": Phase.BLOCK, "loss": 0.5, "verdict": Verdict.ACCEPT},
    {"seq": 2, "phase": Phase.BLOCK, "loss": 0.1, "verdict": Verdict.REJECT},
]
Searched = tuple[Path, PruningRun, list[Trial]]
Singles = dict[Order, tuple[list[Trial], Plan]]


def open_run(checkpoint: Path, data: Path, config: PassConfig = SEARCH) -> PruningRun:
    return PruningRun.open(checkpoint, DataSource(str(data)), config=config)


def lines(trace: list[Trial] | tuple[Trial, ...]) -> list[str]:
    """The lines of ``trace.jsonl`` without what is measured by the clock."""
    return [trial.model_dump_json(exclude={"seconds"}) for trial in trace]


@pytest.fixture(scope="module")
def single(checkpoint: Path, data: Path) -> Singles:
    """Each order's pass by itself."""
    found = {}
    for config in pass_configs(SEARCH):
        run = open_run(checkpoint, data, config)
        found[config.order] = list(run.trials()), run.plan
    return found


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path, data: Path) -> Searched:
    """A finished search: its result, its run, and all trials as they came."""
    run = open_run(checkpoint, data)
    trials = list(run.trials())
    directory = tmp_path_factory.mktemp("results") / "pruned"
    run.publish(directory)
    return directory, run, trials


def winner(single: Singles) -> Order:
    return min(SEARCHED_ORDERS, key=lambda order: min(trial.loss for trial in single[order][0] if accepted(trial)))


def accepted(trial: Trial) -> bool:
    return trial.verdict in (Verdict.BASE, Verdict.ACCEPT)


def test_the_orders_are_all_permutations_of_the_regions() -> None:
    dimensions = Dimensions(layers=6, heads=2, hidden_size=4, intermediate_size=8)
    queues = {tuple(block_order(dimensions, config)) for config in pass_configs(SEARCH)}
    assert len(queues) == len(SEARCHED_ORDERS) == 6
    assert pass_configs(PassConfig()) == [PassConfig()]
    with pytest.raises(ConfigError, match="order=search is six passes"):
        block_order(dimensions, SEARCH)


def test_each_pass_of_a_search_is_the_single_pass(searched: Searched, single: Singles) -> None:
    passes = passes_in(searched[2])
    assert [lines(trace) for trace in passes] == [lines(trace) for trace, _ in single.values()]
    assert len({json.dumps(lines(trace)) for trace in passes}) == 6, "the orders are meant to differ here"
    for trace in passes:
        assert opening_of(trace) == opening_of(passes[0])
        assert [trial.seconds for trial in trace] == sorted(trial.seconds for trial in trace)


def test_the_result_is_that_of_the_best_single_pass(
    searched: Searched,
    single: Singles,
    checkpoint: Path,
    data: Path,
) -> None:
    directory, run, _ = searched
    best = winner(single)
    assert best is not SEARCHED_ORDERS[0], "the default is not meant to win here"
    trace = [Trial.model_validate_json(line) for line in (directory / "trace.jsonl").read_text().splitlines()]
    assert lines(trace) == lines(single[best][0])
    assert tuple(trace) == run.trace
    file = parse_plan_file((directory / "plan.json").read_text())
    assert file.plan == run.plan == single[best][1]
    assert file.config["order"] == best
    alone = open_run(checkpoint, data, PassConfig(**file.config))
    assert list(alone.trials(trace)) == trace, "plan and trace stand for themselves"


def test_with_a_tolerance_the_smallest_is_kept_and_with_a_target_one_that_reached_it(
    checkpoint: Path, data: Path
) -> None:
    knobs = {**SEARCHED_KNOBS, "tolerance": 0.1, "majority_fraction": 0.3}
    freely = open_run(checkpoint, data, make_config("paper", knobs))
    passes = passes_in(freely.trials())
    removed = [sum(trial.parameters for trial in trace if trial.verdict is Verdict.ACCEPT) for trace in passes]
    assert len(set(removed)) > 1, "the orders are meant to differ here"
    assert freely.trace in [tuple(trace) for trace, count in zip(passes, removed, strict=True) if count == max(removed)]
    for trace in passes:
        assert final_loss(trace) < 1.1 * trace[0].loss

    total = sum(part.numel() for part in tiny_model().parameters())
    share = 1 - (max(removed) + min(removed)) / 2 / total
    stopped = open_run(checkpoint, data, make_config("paper", knobs | {"target_size": share}))
    shorter = passes_in(stopped.trials())
    assert [len(one) <= len(other) for one, other in zip(shorter, passes, strict=True)] == [True] * 6
    assert sum(part.numel() for part in stopped.compact_model().parameters()) <= share * total
    ended = progress_of([trial for trace in shorter for trial in trace], stopped.dimensions, stopped.config, ended=True)
    assert (ended.known, ended.seconds_left) == (ended.done, 0)


def test_within_points_the_cheapest_certified_model_of_all_orders_is_kept() -> None:
    knobs = {**SEARCHED_KNOBS, "confirm": 0.5, "within_points": 40, "majority_fraction": 0.2, "seed": 2}
    checkpoint, config = from_memory(tiny_model(), tiny_tokenizer()), make_config("paper", knobs)
    run = PruningRun(checkpoint, prepare(rows_of(tiny_rows(40, pairs=True)), checkpoint, config), None, config)
    for _ in run.trials():
        pass
    costs = [run.passes.targets.operations(measured.point.plan) for measured in run.passes.measured]
    assert len(set(costs)) > 1, "the orders are meant to differ here"
    assert run.passes.targets.operations(run.plan) == min(costs)


def test_the_report_and_the_card_tell_of_every_order(searched: Searched, single: Singles) -> None:
    directory, run, trials = searched
    report = json.loads((directory / "report.json").read_text())
    card = (directory / "README.md").read_text()
    assert [one["order"] for one in report["orders"]] == list(SEARCHED_ORDERS)
    for one, trace in zip(report["orders"], passes_in(trials), strict=True):
        assert (one["loss"], one["trials"], one["seconds"]) == (final_loss(trace), len(trace), trace[-1].seconds)
        sizes = f"{one['parameters']:,} | {one['encoder_parameters']:,}"
        assert f"| {one['loss']:.4f} | {sizes} | {len(trace)} " in card
    (kept,) = [one for one in report["orders"] if one["kept"]]
    assert kept["order"] == winner(single)
    assert kept["loss"] == min(one["loss"] for one in report["orders"])
    assert kept["parameters"] == report["pruned"]["parameters"]
    assert kept["loss"] == pytest.approx(report["pruned"]["validation"]["loss"], rel=1e-5)
    assert (report["trials"], report["config"]["order"]) == (len(run.trace), "search")


def test_among_equals_the_first_order_is_kept(searched: Searched) -> None:
    base = searched[2][0].model_copy(update={"loss": 1.0})
    better = [base, *(base.model_copy(update=change) for change in LATER)]
    assert [final_loss(trace) for trace in ([base], better)] == [1.0, 0.5]
    assert best_of([(final_loss(trace),) for trace in ([base], better, better)]) == 1
    assert best_of([(final_loss(trace),) for trace in ([base], [base])]) == 0


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.55, 0.97])
def test_a_search_that_was_stopped_goes_on_as_if_undisturbed(
    searched: Searched, checkpoint: Path, data: Path, share: float
) -> None:
    _, run, trials = searched
    before = trials[: int(share * len(trials))]
    resumed = open_run(checkpoint, data)
    after = list(resumed.trials(before))
    assert after[: len(before)] == before
    assert lines(after) == lines(trials)
    assert resumed.plan == run.plan


def test_a_trace_of_more_passes_than_there_are_is_refused(searched: Searched, checkpoint: Path, data: Path) -> None:
    with pytest.raises(PlanError, match="holds 6 passes, but this run has 1"):
        next(open_run(checkpoint, data, PassConfig()).trials(searched[2]))


def test_progress_goes_over_all_passes(searched: Searched) -> None:
    _, run, trials = searched
    steps = [progress_of(trials[:count], run.dimensions, SEARCH) for count in range(len(trials) + 1)]
    passes = passes_in(trials)
    opening = len(opening_of(passes[0]))
    blocks = 2 * run.dimensions.layers
    assert (steps[0].done, steps[0].known, steps[0].seconds_left) == (0, opening + 6 * blocks, None)
    assert steps[-1].done == steps[-1].known == len(trials) - 5 * opening
    assert len(trials) <= longest_trace(run.dimensions, SEARCH)
    assert steps[-1].seconds_left == 0
    for early, late in pairwise(steps):
        assert early.done <= late.done <= early.done + 1
        assert early.known <= late.known
        assert early.seconds <= late.seconds
    measured = passes[0][-1].seconds + sum(trace[-1].seconds - trace[opening - 1].seconds for trace in passes[1:])
    assert steps[-1].seconds == pytest.approx(measured)


def test_progress_told_as_trials_come_is_that_of_the_trials_at_once(searched: Searched) -> None:
    _, run, trials = searched
    meter = PassMeter(run.dimensions, SEARCH)
    for count, trial in enumerate(trials, start=1):
        meter.add([trial])
        for ended in (False, True):
            assert meter.progress(ended=ended) == progress_of(trials[:count], run.dimensions, SEARCH, ended=ended)


def test_the_command_shows_every_pass_and_which_was_kept(tmp_path: Path, checkpoint: Path, data: Path) -> None:
    knobs = [text for name, value in SEARCHED_KNOBS.items() for text in ("--set", f"{name}={value}")]
    arguments = ["prune", str(checkpoint), "--data", str(data), "--output", str(tmp_path / "out"), *knobs]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    shown = [line.split()[2:4] for line in result.output.splitlines() if "[" in line and " base " in line]
    assert shown == [[f"[{place}/6", f"{order}]"] for place, order in enumerate(SEARCHED_ORDERS, start=1)]
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    (kept,) = [one["order"] for one in report["orders"] if one["kept"]]
    assert f"best of 6 orders: {kept}" in result.output
    assert report["finding"]["sentence"] in result.output


def test_a_terminal_shows_the_figures_of_the_present_pass(searched: Searched) -> None:
    _, run, trials = searched
    console = Console(force_terminal=True, width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    passes = passes_in(trials)
    with console.file, display_for(console, measured_by(run.dimensions, SEARCH), names_of_passes(SEARCH)) as display:
        for trial in passes[0] + passes[1]:
            display.show(trial)
    shown = console.export_text()
    assert f"[2/6 {SEARCHED_ORDERS[1]}] Loss {final_loss(passes[1]):.4f}" in shown


def test_a_search_in_memory_gives_the_best_pass() -> None:
    result = axformer.prune(tiny_model(), tiny_tokenizer(), tiny_rows(40), SEARCH)
    singles = [axformer.prune(tiny_model(), tiny_tokenizer(), tiny_rows(40), one) for one in pass_configs(SEARCH)]
    best = singles[best_of([(final_loss(single.trace),) for single in singles])]
    assert lines(result.trace) == lines(best.trace)
    assert result.plan == best.plan
    assert result.model.num_parameters() == best.model.num_parameters()


@pytest.mark.parametrize("arithmetic", [{"evaluate_in": "int8"}])
def test_other_arithmetic_searches_by_six_passes_too(checkpoint: Path, data: Path, arithmetic: dict[str, str]) -> None:
    knobs = {**SEARCHED_KNOBS, **arithmetic}
    passes = passes_in(open_run(checkpoint, data, make_config("paper", knobs)).trials())
    last = make_config("paper", {**knobs, "order": SEARCHED_ORDERS[-1]})
    assert lines(passes[-1]) == lines(list(open_run(checkpoint, data, last).trials()))
