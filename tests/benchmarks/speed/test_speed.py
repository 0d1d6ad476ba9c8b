"""The benchmark from the public files to the report, on a tiny checkpoint, and what its figures rest on."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from axformer.config import make_config
from axformer.data.reading import read_rows
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.plan.trial import Verdict
from benchmarks.speed.__main__ import measure_set
from benchmarks.speed.child import measure
from benchmarks.speed.machine import environment
from benchmarks.speed.padding import ROWS, in_data_order
from benchmarks.speed.plans import plans_of, spread_out
from benchmarks.speed.record import Asked, Result, SetResult
from benchmarks.speed.results import write_cut, write_result
from benchmarks.speed.rounds import Setting, ask_child
from benchmarks.speed.sets import SpeedSet, chosen_sets, write_set
from benchmarks.speed.steps import EARLY, PADDED, STEPS
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_rows, write_rows

TINY = SpeedSet("cola", "tiny", "tiny.jsonl", 40, 10)
ENVIRONMENT = environment("cpu", 1)
REFERENCE = """\
import json, sys
from benchmarks.speed.child import measure
from benchmarks.speed.record import Asked

checkpoint, data, _, out = sys.argv[1:5]
run = measure(Asked(step="dynamic", checkpoint=checkpoint, data=data, threads=1))
with open(out, "w") as file:
    file.writelines(trial.model_dump_json(exclude={'parameters'}) + "\\n" for trial in run.trials)
"""
"""Whole forwards of our own, called as the naive reference is."""


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    """A checkpoint and its data; the public file lies beside."""
    home = tmp_path_factory.mktemp("speed")
    checkpoint = save_tiny_checkpoint(home / "checkpoint", tiny_config(layers=2), seed=3)
    write_rows(home / TINY.file, tiny_rows(TINY.rows, seed=3))
    write_set(TINY, home, home / "data.jsonl", None)
    return Setting(checkpoint, home / "data.jsonl", "cpu", 1)


@pytest.fixture(scope="module")
def result(setting: Setting) -> SetResult:
    """Two rounds of all steps."""
    return measure_set(measure, TINY, setting.data.parent, setting, STEPS, 2, rows=None, whole=False)


@pytest.fixture(scope="module")
def cut(setting: Setting) -> SetResult:
    """All steps on the cut, beside a reference that whoever calls gives."""
    source, data = setting.data.parent, setting.data.with_name("cut.jsonl")
    reference = source / "whole_forwards.py"
    reference.write_text(REFERENCE, encoding="utf-8")
    setting = replace(setting, data=data)
    return measure_set(
        *(measure, TINY, source, setting, STEPS, 1), rows=TINY.cut, whole=False, oracle=reference, by_kind=True
    )


def test_every_step_decides_as_whole_forwards_do(setting: Setting) -> None:
    found = measure_set(measure, TINY, setting.data.parent, setting, STEPS, 1, rows=None, whole=True)
    assert [one.step for one in found.agreements] == [step.name for step in STEPS[1:]]
    assert {one.reference for one in found.agreements} == {PADDED}
    for one in found.agreements:
        assert one.same == one.trials == len(found.trace)
        assert one.loss_difference is not None
        assert (one.loss_difference or 0.0) < 1e-5
    assert len({trial.verdict for trial in found.trace}) >= 3, "a pass without acceptances proves little"


def test_single_trials_stand_for_the_pass(result: SetResult) -> None:
    single = {one.step: one for one in result.agreements}[PADDED]
    assert single.same is None
    assert single.loss_difference is not None
    assert single.loss_difference < 1e-5
    assert [len(runs) for runs in result.rounds] == [len(STEPS), len(STEPS)]
    evaluated = [[one.seq for one in runs[0].evaluations] for runs in result.rounds]
    assert [len(seqs) for seqs in evaluated] == [1, 1]
    assert evaluated[0] != evaluated[1]


@pytest.mark.slow
def test_verdicts_on_the_cut_are_those_of_the_reference(cut: SetResult) -> None:
    assert cut.rows == TINY.cut
    assert [one.step for one in cut.agreements] == [step.name for step in STEPS]
    assert {one.reference for one in cut.agreements} == {"whole_forwards.py"}
    assert all(one.same in {None, one.trials} for one in cut.agreements)


def test_padded_forwards_cost_the_operations_of_the_shapes(result: SetResult) -> None:
    config = tiny_config(layers=2)
    hidden, inner, tokens = config.hidden_size, config.intermediate_size, 128
    projections = 2 * tokens * (4 * hidden * hidden + 2 * hidden * inner)
    attention = 2 * 2 * tokens * tokens * hidden
    head = 2 * hidden * hidden + 2 * hidden * config.num_labels
    a_row = config.num_hidden_layers * (projections + attention) + head
    assert result.flops[PADDED] == len(result.trace) * result.rows * a_row
    assert result.flops[EARLY] <= result.flops["prefixes"] < result.flops["sorted"] < result.flops[PADDED]


def test_baselines_keep_the_order_of_the_file_and_pad_as_they_say(setting: Setting) -> None:
    checkpoint = load_checkpoint(setting.checkpoint)
    data = prepare(read_rows(str(setting.data)), checkpoint, make_config("published"))
    for pad_to in (128, None):
        samples = in_data_order(data, checkpoint, pad_to)
        assert [place for batch in samples.batches for place in batch.rows.tolist()] == list(range(TINY.rows))
        assert [len(batch.rows) for batch in samples.batches] == [ROWS, TINY.rows - ROWS]
        lengths = [data.samples.lengths[batch.rows] for batch in samples.batches]
        assert [batch.tokens for batch in samples.batches] == [pad_to or int(one.max()) for one in lengths]
        labels = [label for batch in samples.batches for label in batch.labels.tolist()]
        assert labels == data.samples.encoded.labels


def test_plans_hold_what_was_accepted_before(result: SetResult) -> None:
    plans = plans_of(result.trace)
    assert list(plans) == list(range(1, len(result.trace)))
    accepted = [trial.element for trial in result.trace if trial.verdict is Verdict.ACCEPT]
    last = result.trace[-1]
    assert plans[last.seq] == [*(one for one in accepted if one != last.element), last.element]


def test_turns_measure_plans_from_all_over_the_pass() -> None:
    plans = {seq: [str(seq)] for seq in range(1, 13)}
    turns = [list(spread_out(plans, 2, turn, 3)) for turn in range(3)]
    assert turns == [[2, 8], [4, 10], [6, 12]]


def test_results_are_written_with_figures_and_a_picture(result: SetResult, cut: SetResult, tmp_path: Path) -> None:
    whole = Result(command="python -m benchmarks.speed", environment=ENVIRONMENT, minutes=1.5, set=result)
    write_result(whole, tmp_path)
    report = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    rows = [line for line in report.splitlines() if line.startswith(f"| {EARLY} | ") and "reference" not in line]
    assert f"{len(result.trace)} of {len(result.trace)}" in rows[-1]
    assert rows[-1].count("|") == 9
    assert "| early over dynamic | ≥ 8× | " in report
    assert "are not run to the" in report
    assert "Each technique in turn" not in report
    assert Result.model_validate_json((tmp_path / "results" / "cola.json").read_text()) == whole
    texts = [one.text for one in ElementTree.parse(tmp_path / "results" / "speed.svg").iter() if one.text]
    assert {step.name for step in STEPS} <= set(texts)
    write_cut(whole.model_copy(update={"set": cut}), tmp_path)
    report = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    below = report[report.index("## Each technique in turn") :]
    assert f"### tiny: {TINY.cut} rows" in below
    assert below.count(f"{len(cut.trace)} of {len(cut.trace)}") == sum(step.evaluations is None for step in STEPS)
    assert "| multiplications | " in below


def test_a_set_that_is_measured_later_stands_beside_the_others(result: SetResult, tmp_path: Path) -> None:
    for name in ("rte", "cola", "rte"):
        one = result.model_copy(update={"name": name, "title": f"the set {name}"})
        write_result(Result(command=name, environment=ENVIRONMENT, minutes=1.0, set=one), tmp_path)
    titles = [
        line for line in (tmp_path / "RESULTS.md").read_text(encoding="utf-8").splitlines() if "## the set" in line
    ]
    assert [title.split(":")[0] for title in titles] == ["## the set cola", "## the set rte"]


def test_a_cut_is_drawn_from_the_whole_set_and_has_no_targets(setting: Setting, tmp_path: Path) -> None:
    assert write_set(TINY, setting.data.parent, tmp_path / "cut.jsonl", 10) == 10
    labels = [json.loads(line)["label"] for line in (tmp_path / "cut.jsonl").read_text().splitlines()]
    assert sorted(labels) == [0] * 5 + [1] * 5


def test_a_process_of_its_own_measures_the_same_pass(setting: Setting) -> None:
    asked = Asked(step=EARLY, checkpoint=str(setting.checkpoint), data=str(setting.data), threads=1)
    run, same = ask_child(asked), measure(asked)
    assert [(one.element, one.verdict) for one in run.trials] == [(one.element, one.verdict) for one in same.trials]
    assert run.seconds is not None
    assert run.seconds > 0
    assert run.peak_bytes >= run.loaded_bytes > 0
    assert all(rate > 0 for rate in run.rates.values())


def test_a_process_that_fails_says_why(setting: Setting) -> None:
    asked = Asked(step="gone", checkpoint=str(setting.checkpoint), data=str(setting.data), threads=1)
    with pytest.raises(
        RuntimeError, match="ended with code 1: ValueError: step 'gone' is unknown; there are padded-128"
    ):
        ask_child(asked)


def test_sets_are_called_by_name_and_say_where_they_should_be(tmp_path: Path) -> None:
    assert [one.name for one in chosen_sets(["rte"])] == ["rte"]
    with pytest.raises(ValueError, match="set 'x' is unknown; there are cola, rte, sst2"):
        chosen_sets(["x"])
    with pytest.raises(FileNotFoundError, match=r"tiny\.jsonl is not there; name the directory"):
        write_set(TINY, tmp_path, tmp_path / "out.jsonl", None)
