"""The experiment goes on where it stopped, and its document says what the cells say, from their files alone."""

import json
from dataclasses import replace
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel, BertConfig, MPNetConfig

from axformer.config import PRESETS, Order, PassConfig, Preset, make_config
from axformer.config.axformer import REMOVED
from axformer.intake.checkpoint import load_checkpoint
from axformer.methods.axformer.ordering import order_of
from axformer.reporting.findings import OPTIMISM, Optimism
from benchmarks import kept
from benchmarks.checkpoints import Checkpoint, checkpoint_named
from benchmarks.evidence.cell import Place, run_cell
from benchmarks.evidence.document import by_question, document_of
from benchmarks.evidence.grid import (
    ARMS,
    EARLIER,
    SEEDS,
    Cell,
    cells,
    compared_cells,
    compression_cells,
    earlier_cells,
    questions,
    traded_cells,
    varied_cells,
)
from benchmarks.evidence.reading import ENCODERS, RESULTS, read_cells, removed_share_of_encoder
from benchmarks.evidence.standing import FORMAT, marks_of, stands
from benchmarks.evidence.tables import promised_and_held
from benchmarks.rows import Row
from benchmarks.sets.catalog import SETS
from benchmarks.sets.parts import Parts
from tests.tiny_models import save_tiny_checkpoint

ROWS = [Row(f"word{index % 2} word{2 + index % 50}", "01"[index % 2]) for index in range(40)]
TINY = Checkpoint("tiny-s0", "minilm", "classification", "tiny", ("accuracy",), max_length=16)
CELL = Cell(TINY, "confirm")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A home whose checkpoint was trained before, and a catalog with one tiny set."""
    monkeypatch.setattr(kept, "SETS", {"tiny": lambda _: Parts(ROWS, ROWS, ROWS)})
    home = tmp_path / "evidence"
    save_tiny_checkpoint(home / "checkpoints" / TINY.name)
    (home / "checkpoints" / f"{TINY.name}.json").write_text("{}")
    return Place(tmp_path, home, home / "cells", rows=30, threads=1, bfloat16=False)


def test_every_arm_is_a_pass_that_can_be_asked_for() -> None:
    for arm in (ARMS[name] for name in ARMS.keys() - EARLIER.keys()):
        make_config(arm.preset, arm.knobs)


def test_cells_have_names_of_their_own_and_sets_that_there_are() -> None:
    everything = cells()
    assert len({one.name for one in everything}) == len(everything)
    assert everything == compared_cells() + compression_cells() + traded_cells() + varied_cells()
    assert {one.arm for one in everything} == ARMS.keys() - EARLIER.keys()
    assert {one.checkpoint.data for one in everything} <= set(SETS)
    assert {one.checkpoint.seed for one in everything} == set(SEEDS)
    assert [one.name for one in cells(["paper"], ["rte-minilm-*"])] == [f"rte-minilm-s{seed}-paper" for seed in SEEDS]


def test_every_cell_is_asked_for_by_one_question_and_the_document_says_how_many_are_there() -> None:
    asked = [cell for some in questions().values() for cell in some]
    assert sorted(one.name for one in asked) == sorted(one.name for one in cells())
    text = document_of([cell_file("paper", 0, 0.1, cell="rte-mpnet-base-s0-paper")], planned=3)
    rows = [line for line in text.splitlines() if line.startswith("| do the gains of the presets hold?")]
    assert rows == [
        "| do the gains of the presets hold? minilm | 0 of 72 |",
        "| do the gains of the presets hold? mpnet-base | 1 of 18 |",
    ]


def test_each_cell_that_is_kept_was_measured_with_the_knobs_of_its_arm_or_is_marked() -> None:
    planned = {one.name: one for one in (*cells(), *earlier_cells())}
    for content in read_cells(RESULTS):
        cell, config = planned[content["cell"]], content["report"]["config"]
        arm, checkpoint = ARMS[cell.arm], cell.checkpoint
        knobs = {
            "seed": checkpoint.seed,
            "max_length": checkpoint.max_length,
            "task_name": checkpoint.task_name,
            **({} if cell.arm in EARLIER else arm.knobs),
        }
        asked = make_config(arm.preset, knobs)
        wanted = asked.model_dump(mode="json") | (dict(arm.knobs) if cell.arm in EARLIER else {})
        differ = {name for name in config.keys() - REMOVED.keys() if wanted[name] != config[name]}
        assert content["arm"] == cell.arm
        assert differ <= {"task_name"}, content["cell"]
        is_in_order = order_of(PassConfig(order=config["order"], task_name=config["task_name"])) == order_of(asked)
        assert ("*" in marks_of(content)) is not is_in_order


def test_passes_over_cola_go_in_the_order_that_the_paper_advises() -> None:
    for cell in cells():
        asked = make_config(ARMS[cell.arm].preset, {"task_name": cell.checkpoint.task_name, **ARMS[cell.arm].knobs})
        if cell.checkpoint.data == "cola" and "order" not in {
            **PRESETS[Preset(ARMS[cell.arm].preset)],
            **ARMS[cell.arm].knobs,
        }:
            assert order_of(asked) is Order.TOP_BOTTOM_MIDDLE
        elif "order" not in ARMS[cell.arm].knobs:
            assert order_of(asked) is Order.TOP_MIDDLE_BOTTOM


@pytest.mark.parametrize(
    ("name", "more", "marks"),
    [
        ("cola-minilm-s0-paper", {}, "*"),
        ("cola-minilm-s0-paper", {"task_name": "linguistic_acceptability"}, ""),
        ("cola-minilm-s0-published", {"order": "top-middle-bottom"}, ""),
        ("rte-minilm-s0-paper", {}, ""),
        ("cola-minilm-s0-two-points", {}, "*†"),
        ("sst2-minilm-s0-two-points", {}, "†"),
    ],
)
def test_a_cell_that_was_measured_otherwise_does_not_stand_and_is_marked(
    name: str, more: dict[str, str], marks: str, tmp_path: Path
) -> None:
    (cell,) = cells(only=[name])
    old = cell_file(cell.arm, 0, 0.1, cell=name, data=cell.checkpoint.data)
    old["report"]["config"] |= more
    (tmp_path / name).write_text(json.dumps(old))
    assert marks_of(old) == marks
    assert stands(tmp_path / name) is (marks == "")
    assert not stands(tmp_path / "none")
    new = old | {"format": FORMAT}
    assert marks_of(new) == marks.replace("†", "")


@pytest.mark.parametrize(
    ("arms", "only", "complaint"),
    [(["bold"], [], "arm 'bold' is unknown; there are paper"), (["paper"], ["rte"], "no cell is called 'rte'")],
)
def test_what_is_not_in_the_grid_is_refused(arms: list[str], only: list[str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        cells(arms, only)


@pytest.mark.slow
def test_a_cell_is_measured_once_and_told_as_it_was_measured(place: Place) -> None:
    assert run_cell(CELL, place) == "done"
    content = json.loads(place.file(CELL).read_text())
    report = content["report"]
    assert (content["cell"], content["rows"], content["metric"]) == ("tiny-s0-confirm", 30, "accuracy")
    assert (report["config"]["confirm"], report["data"]["validation"]["rows"]) == (0.5, 30)
    assert content["checkpoint"] == load_checkpoint(place.home / "checkpoints" / TINY.name).sha256
    assert not (place.home / "passes" / CELL.name).exists(), "models take room"
    written = place.file(CELL).stat().st_mtime_ns
    assert run_cell(CELL, place) == "is there"
    assert place.file(CELL).stat().st_mtime_ns == written
    text = document_of(read_cells(place.results), planned=240)
    assert "1 of 240 cells. **A trial run: at most 30 rows" in text
    change = report["comparison"]["test"]["differences"]["loss"]
    assert f"{change['value']:+.4f} [{change['interval'][0]:+.4f}, {change['interval'][1]:+.4f}]" in text
    assert f"| {report['base']['test']['loss']:.4f} |" in text
    for table in text.split("\n\n"):
        lines = table.splitlines()
        if lines[0].startswith("|"):
            assert len({line.count("|") for line in lines}) == 1


@pytest.mark.slow
def test_a_pass_may_be_given_fewer_rows_to_decide_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ARMS, "rows-100", replace(ARMS["rows-100"], validation_rows=20))
    cell = Cell(TINY, "rows-100")
    assert run_cell(cell, place) == "done"
    data = json.loads(place.file(cell).read_text())["report"]["data"]
    assert (data["validation"]["rows"], data["test"]["rows"]) == (20, 30)
    assert len((place.sets / "tiny" / "validation.jsonl").read_text().splitlines()) == 30, "the set is left as it is"


def test_why_so_little_is_removed_has_a_table_of_its_own() -> None:
    asked = [cell_file("paper", 0, -0.2) | {"cell": "cola-10-epochs-paper"}, cell_file("paper", 0, 0.1)]
    text = document_of(asked, planned=240)
    compared, compression = text.split("## Why so little is removed")
    assert "| rte | c | paper | 1 |" in compared.replace("minilm", "c")
    table = compression.split("\n\n")[2].splitlines()
    assert [line.split(" | ")[:2] for line in table[2:]] == [["| minilm", "10"]]


@pytest.mark.parametrize(("change", "word"), [(-0.01, "kept"), (-0.02, "kept"), (-0.05, "perhaps"), (-0.13, "broken")])
def test_a_promise_of_points_is_held_to_the_held_out_rows(change: float, word: str) -> None:
    one = cell_file("two-points", 0, change, cell="rte-minilm-s0-two-points")
    report = one["report"] | {"config": one["report"]["config"] | {"within_points": 2.0}}
    for part in ("base", "comparison", "data"):
        report[part] = report[part] | {"confirming": report[part]["test"]}
    text = document_of([one | {"report": report}], planned=240)
    (row,) = [
        line for line in text.splitlines() if line.startswith("| rte-minilm-s0 | `two-points`† | 20 | accuracy |")
    ]

    assert f"| {word} | 10.0% | 20.0% | 1.25x fewer | 2.00x |" in row


@pytest.mark.slow
def test_a_cell_that_fails_leaves_no_file_and_is_tried_again(place: Place) -> None:
    lost = Cell(replace(TINY, max_length=100_000), "paper")
    assert run_cell(lost, place).startswith("FAILED: error: knob max_length=100000")
    assert not place.file(lost).exists()


def cell_file(arm: str, seed: int, change: float, **more: Any) -> dict[str, Any]:
    """The file of a cell whose held-out loss changed by so much, from 1.0."""
    difference = {"loss": {"value": change, "interval": [change - 0.1, change + 0.1]}}
    difference["accuracy"] = difference["loss"]
    base = {"validation": {"loss": 1.0}, "test": {"loss": 1.0, "accuracy": 0.5}, "parameters": 100, "latency_ms": 2.0}
    base["encoder_parameters"] = 50
    report = {
        "base": base,
        "pruned": base | {"parameters": 90, "encoder_parameters": 40, "latency_ms": 1.0},
        "task": "classification",
        "trials": 7,
        "comparison": {
            "validation": {"differences": {"loss": {"value": -0.2, "interval": [-0.3, -0.1]}}},
            "test": {"differences": difference, "mcnemar": None},
        },
        "path": [{"kept": False}, {"kept": True}, {"kept": False}],
        "data": {"validation": {"rows": 10}, "test": {"rows": 20}},
        "estimated_speedup": 1.25,
        "seconds": 3.0,
        "environment": dict.fromkeys(("axformer", "commit", "torch", "device", "cores", "threads"), "x"),
        "config": {"order": "auto", "task_name": None, "within_points": None},
    }
    plain = {
        "format": "axformer-evidence/1",
        "cell": f"c-{arm}-{seed}",
        "checkpoint": "0f" * 32,
        "data": "rte",
        "model": "minilm",
        "seed": seed,
        "arm": arm,
        "rows": None,
    }
    return plain | {"metric": "accuracy", "report": report} | more


def test_seeds_are_put_together_with_their_spread_and_optimism_is_the_difference() -> None:
    found = [cell_file("paper", 0, 0.3), cell_file("paper", 1, 0.1), cell_file("published", 0, -0.2)]
    text = document_of(found, planned=3)
    assert "A trial run" not in text
    assert "| rte | minilm | paper | 2 | -0.2000 ± 0.0000 | +0.2000 ± 0.1414 |" in text
    assert "| 1 none, 1 loss | 10.0% | 20.0% | 1.25x fewer | 2.00x |" in text
    assert "| `paper` | 2 | -20.0% | +20.0% | +40.0% |" in text
    assert "| `published` | 1 | -20.0% | -20.0% | +0.0% |" in text
    assert "| 1 of 2 | 3 |" in text


def table_after(text: str, heading: str) -> list[str]:
    """The rows of the first table behind a heading, without its head."""
    lines = text.split(f"## {heading}\n")[1].splitlines()
    return list(takewhile(_is_row, dropwhile(lambda line: not _is_row(line), lines)))[2:]


def _is_row(line: str) -> bool:
    return line.startswith("|")


def test_reports_say_how_far_validation_figures_were_off_in_this_evidence() -> None:
    compared = by_question(read_cells(RESULTS)).compared
    same = [one for one in compared if one["arm"] == "paper"]
    promised, held = promised_and_held(same)
    assert Optimism(len(same), round(promised, 3), round(held, 3)) == OPTIMISM


def older(one: dict[str, Any]) -> dict[str, Any]:
    """The file of a cell whose report does not tell the encoder."""
    sides = {
        side: {name: value for name, value in one["report"][side].items() if name != "encoder_parameters"}
        for side in ("base", "pruned")
    }
    return one | {"report": one["report"] | sides}


def test_cells_that_do_not_tell_the_encoder_are_of_models_whose_encoder_is_known() -> None:
    for name, config in (
        ("minilm", BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)),
        ("mpnet-base", MPNetConfig()),
    ):
        with torch.device("meta"):
            layers = AutoModel.from_config(config).encoder.layer
        assert sum(one.numel() for one in layers.parameters()) == ENCODERS[name]
    assert {one["model"] for one in read_cells(RESULTS)} == set(ENCODERS)
    told = older(cell_file("paper", 0, 0.1))
    assert removed_share_of_encoder(told) == 10 / ENCODERS["minilm"]
    assert removed_share_of_encoder(told | {"model": "another"}) is None
    assert "| 1 none | 10.0% | – | 1.25x fewer |" in document_of([told | {"model": "another"}], planned=1)


def test_what_a_cell_tells_of_the_encoder_counts() -> None:
    assert removed_share_of_encoder(cell_file("paper", 0, 0.1)) == 10 / 50


def test_seeds_are_told_in_points_before_and_after() -> None:
    found = [cell_file("paper", seed, 0.0) for seed in range(2)] + [cell_file("robust", 0, 0.0)]
    found[1]["report"]["base"] = {**found[1]["report"]["base"], "test": {"loss": 1.0, "accuracy": 0.54}}
    text = document_of(found, planned=3)
    assert table_after(text, "How much the seed matters") == [
        "| rte | minilm | paper | 2 | accuracy | 50.00 to 54.00 | 2.83 | 8.00 | 50.00 to 50.00 | 0.00 | 0.00 |"
    ]


def test_the_figures_of_table_2_are_over_all_sets_with_several_seeds() -> None:
    """Two sets whose seeds lie 4 and 2 points apart before the pass: variances of 8 and 2, best 54 and 52, worst 50."""
    found = [cell_file("paper", seed, 0.0, data=data) for data in ("rte", "sst2") for seed in range(2)]
    for one, accuracy in zip(found, (0.5, 0.54, 0.52, 0.5), strict=True):
        one["report"]["base"] = {**one["report"]["base"], "test": {"loss": 1.0, "accuracy": accuracy}}
    rows = table_after(document_of([*found, cell_file("robust", 0, 0.0)], planned=3), "Over all sets")
    assert rows[0].startswith("| BERT-base | the paper's | base | 10 | 10 | 1.48 | 4.86 |")
    assert rows[2:] == [
        "| minilm | `paper` | base | 2 | 2 | 5.00 | 8.00 | 53.00 | 50.00 |",
        "| minilm | `paper` | pruned | 2 | 2 | 0.00 | 0.00 | 50.00 | 50.00 |",
    ]


def test_questions_are_told_by_exact_match_as_in_the_paper_with_f1_beside() -> None:
    found = [cell_file("paper", seed, 0.25, data="squad", metric="f1") for seed in range(2)]
    for one in found:
        report = one["report"]
        for model in ("base", "pruned"):
            report[model] = report[model] | {"test": {"loss": 1.0, "exact_match": 0.25, "f1": 0.5}}
        differences = report["comparison"]["test"]["differences"]
        differences |= {"exact_match": differences["accuracy"], "f1": differences["loss"] | {"value": 0.5}}
    text = document_of(found, planned=3)
    assert "| exact match; f1 | +0.2500 ± 0.0000; +0.5000 ± 0.0000 |" in text
    assert "| exact match; f1 | 0.2500; 0.5000 | +0.2500 [" in text
    assert [row.split(" | ")[4:6] for row in table_after(text, "How much the seed matters")] == [
        ["exact match", "25.00 to 25.00"],
        ["f1", "50.00 to 50.00"],
    ]
    assert checkpoint_named("squad").metrics == ("exact_match",)


def test_the_protocol_is_told_beside_the_papers() -> None:
    found = [cell_file("paper", seed, 0.0, cell=f"rte-minilm-s{seed}-paper") for seed in (0, 2)]
    rows = table_after(document_of(found, planned=3), "What is not as in the paper")
    assert rows[1:] == ["| rte | minilm | 5 | 2 of 3 | 10 | 20 |"]


def test_cells_that_were_measured_otherwise_are_marked_and_never_put_together_with_others() -> None:
    old, new = (cell_file("paper", seed, 0.0, cell=f"cola-minilm-s{seed}-paper", data="cola") for seed in (0, 1))
    new["report"]["config"] |= {"task_name": "linguistic_acceptability"}
    text = document_of([old, new, cell_file("paper", 0, 0.0, cell="rte-minilm-s0-paper")], planned=3)
    assert "- \\* (1): measured in the order top, middle, bottom; for this task the paper advises top, bottom" in text
    assert "†" not in text
    assert "| do the gains of the presets hold? minilm | 2 of 72, and 1 that are marked |" in text
    assert [row.split(" | ")[2:4] for row in table_after(text, "By set")] == [
        ["paper", "1"],
        ["paper*", "1"],
        ["paper", "1"],
    ]
    assert [row.split(" | ")[0] for row in table_after(text, "Every cell")] == [
        *("| cola-minilm-s0-paper*", "| cola-minilm-s1-paper", "| rte-minilm-s0-paper"),
    ]


def test_changed_heuristics_stand_beside_the_paper_s_rule_on_the_same_checkpoint() -> None:
    changed = cell_file("adaptive", 1, 0.1, cell="rte-minilm-s1-adaptive")
    found = [cell_file("paper", 0, 0.3, checkpoint="1e" * 32), changed, cell_file("paper", 1, -0.2)]
    text = document_of(found, planned=3)
    rows = table_after(text, "Other heuristics")
    assert [row.split(" | ")[:5] for row in rows] == [
        ["| rte", "`paper`", "1", "-0.2000", "-0.2000"],
        ["| rte", "`adaptive`", "1", "-0.2000", "+0.1000"],
    ]
    assert all("adaptive" not in row for row in table_after(text, "By set"))


def test_what_goes_is_told_by_layer() -> None:
    cell = cell_file("paper", 2, 0.0)
    names = ("ffn", "attention.head.3", "attention.head.4", "ffn.neurons.0:3")
    removed = [f"layer.{layer}.{name}" for layer, name in zip((0, 2, 2, 2), names, strict=True)]
    cell["report"] |= {"removed": removed, "hard_attention": [0]}
    text = document_of([cell, cell_file("paper", 0, 0.0)], planned=2)
    assert "## Other heuristics" not in text, "no cell is about them"
    assert "| minilm | layer 0 | layer 1 | layer 2 |" in text
    assert table_after(text, "What goes") == ["| rte, seed 2 | FFN, top K |  | 2 heads, 1 group |"]
