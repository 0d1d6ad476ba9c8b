"""Data that calibrates: read as the task reads its inputs, whatever stands where answers are, and told where it is unlike."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from axformer.cli.main import app
from axformer.config import RunConfig, make_config
from axformer.data.columns import ANSWERS, Columns, DataSource
from axformer.data.reading import read_rows, rows_of
from axformer.data.rows import Rows
from axformer.errors import ConfigError, DataError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet, drawn_to_calibrate, prepare, prepare_inputs
from axformer.intake.likeness import SHORTER_TOKENS, UNKNOWN_SHARE, TokenFigures, figures_of, unlike
from axformer.opening import Inputs
from axformer.plan.plan import Plan
from axformer.repair.refit import refit_plan
from axformer.repair.storage import read_refit
from axformer.run import PruningRun
from tests.family_cases import CONFIG, SETTINGS, Case, batching_of, checkpoint_of, data_of
from tests.runs import open_run
from tests.tiny_models import tiny_rows, write_rows

CASES = [Case("gpt2" if task == "causal_lm" else "bert", task) for task in SETTINGS]
WRONG: tuple[Any, ...] = ("no class", None, {"text": 7}, [[]], 1e300, "")
COMPRESS = {"method": "compress", "confirm": 0.0, "within_points": None, "budgets": [0.5]}


def unlabelled(case: Case) -> list[dict[str, object]]:
    """The rows of a case, with nothing but what the model reads."""
    return [{name: value for name, value in row.items() if name not in ANSWERS} for row in SETTINGS[case.task][2]]


def without_columns(rows: list[dict[str, object]], *names: str) -> list[dict[str, object]]:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_without_labels_are_what_rows_with_them_are(case: Case) -> None:
    deciding, checkpoint = data_of(case), checkpoint_of(case)
    calibrating = prepare_inputs(deciding.rows, rows_of(unlabelled(case)), checkpoint, batching_of(case))
    assert len(calibrating.samples) == len(deciding.samples)
    for one, other in zip(calibrating.samples.batches, deciding.samples.batches, strict=True):
        assert torch.equal(one.rows, other.rows)
        assert one.inputs.keys() == other.inputs.keys()
        assert all(torch.equal(values, other.inputs[name]) for name, values in one.inputs.items())


def drawn(other: Rows, rows: Rows, checkpoint: Checkpoint, config: RunConfig) -> DataSet:
    """The rows of some that weights are fitted to."""
    return drawn_to_calibrate(prepare_inputs(other, rows, checkpoint, config), checkpoint, config)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_are_drawn_by_the_seed_in_the_order_of_the_file(case: Case) -> None:
    deciding, checkpoint = data_of(case), checkpoint_of(case)
    rows = rows_of(unlabelled(case))
    sets = [
        drawn(deciding.rows, rows, checkpoint, CONFIG.model_copy(update={"calibrate_rows": count, "seed": seed}))
        for count, seed in ((5, 0), (5, 0), (5, 1), (len(rows), 0), (None, 0))
    ]
    assert [len(one.samples) for one in sets] == [5, 5, 5, len(rows), len(rows)]
    features = [one.samples.encoded.features["input_ids"] for one in sets]
    assert features[0] == features[1] != features[2]
    assert features[3] == features[4]
    places = iter(features[3])
    assert all(row in places for row in features[0]), "in the order of the file"
    assert f"weights are fitted to 5 of its {len(rows)} rows, drawn at random" in sets[0].samples.encoded.notes[-1]
    assert not sets[3].samples.encoded.notes
    copies = drawn(deciding.rows, rows_of(unlabelled(case) * 3), checkpoint, CONFIG).samples.encoded
    assert copies.features == sets[3].samples.encoded.features
    assert f"{len(rows)} of its {3 * len(rows)} rows, each input once" in copies.notes[-1]


def test_many_rows_calibrate_as_far_as_they_add_something() -> None:
    case = Case("bert", "classification")
    deciding, checkpoint = data_of(case), checkpoint_of(case)
    neurons = checkpoint.dimensions.intermediate_size

    def used(text: str) -> tuple[int, int]:
        ways = itertools.product(("word1", "word2", "word3"), repeat=7)
        rows = rows_of([{"text": f"{text} {' '.join(words)}"} for words in itertools.islice(ways, 1200)])
        samples = drawn(deciding.rows, rows, checkpoint, CONFIG).samples
        return len(samples), int(samples.lengths.sum())

    rows, tokens = used("word1 word2")
    assert rows == 1200 or tokens >= 20 * neurons
    assert used("word1 word2 " * 5)[0] == 1000, "at least so many rows"


@pytest.mark.parametrize("task", ["classification", "token_classification"])
def test_labels_change_nothing_of_a_fit(task: str) -> None:
    case = Case("bert", task)
    deciding, checkpoint = data_of(case), checkpoint_of(case)
    calibrating = prepare_inputs(deciding.rows, rows_of(unlabelled(case)), checkpoint, CONFIG)
    layers = [layer.model_copy(update={"heads": layer.heads[:2]}) for layer in Plan.full(checkpoint.dimensions).layers]
    fits = [
        refit_plan(checkpoint.model, checkpoint.architecture, data.samples, Plan(layers=tuple(layers)))
        for data in (deciding, calibrating)
    ]
    for block, fit in fits[0].items():
        assert fit.weight is not None
        weight = fits[1][block].weight
        assert weight is not None
        assert torch.equal(weight, fit.weight)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_labels_that_are_wrong_or_no_labels_are_not_looked_at(case: Case, tmp_path: Path) -> None:
    rows = [row | dict.fromkeys(ANSWERS, WRONG[index % len(WRONG)]) for index, row in enumerate(unlabelled(case))]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    columns = Columns(label="stars", labels="toxic+insult", tags="pos", answers="spans").without_answers()
    read = read_rows(str(file), columns)
    found = prepare_inputs(data_of(case).rows, read, checkpoint_of(case), CONFIG).samples.encoded
    expected = prepare_inputs(
        data_of(case).rows, rows_of(unlabelled(case)), checkpoint_of(case), CONFIG
    ).samples.encoded
    assert found.features == expected.features


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_that_lack_what_the_model_reads_are_refused(case: Case) -> None:
    for lacking in unlabelled(case)[0]:
        rows = rows_of([{"other": "x", **row} for row in without_columns(unlabelled(case), lacking)])
        with pytest.raises(DataError, match=f"has no column '{lacking}', it has "):
            prepare_inputs(data_of(case).rows, rows, checkpoint_of(case), CONFIG)


def test_names_of_columns_but_those_of_answers_must_be_there(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [{"sentence": "word1"}])
    columns = Columns(text="sentence", label="stars")
    with pytest.raises(DataError, match="has no column 'stars'"):
        read_rows(str(file), columns)
    assert read_rows(str(file), columns.without_answers()).texts("text") == ["word1"]
    with pytest.raises(DataError, match="has no column 'body'"):
        read_rows(str(file), Columns(text="body").without_answers())


FIGURES = st.builds(TokenFigures, unknown=st.floats(0, 1), characters=st.floats(0, 10), row=st.floats(1, 512))


@given(FIGURES, FIGURES)
def test_what_is_told_says_both_figures_and_the_same_is_not_told(one: TokenFigures, other: TokenFigures) -> None:
    assert unlike(one, one) is None
    told = unlike(one, other) or ""
    assert ("unknown" in told) == (one.unknown > other.unknown + UNKNOWN_SHARE)
    if "unknown" in told:
        assert (
            f"{one.unknown:.1%} of its tokens are unknown to the tokenizer (validation data: {other.unknown:.1%})"
            in told
        )
    if "median" in told:
        assert f"its median row has {one.row:g} tokens (validation data: {other.row:g})" in told
    alike = replace(one, unknown=other.unknown, row=other.row, characters=other.characters * (1 + SHORTER_TOKENS) / 2)
    assert unlike(alike, other) is None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_task_has_figures(case: Case) -> None:
    figures = figures_of(data_of(case), checkpoint_of(case).tokenizer)
    assert figures.unknown == 0
    assert 5 <= figures.characters <= 6, "the tiny words are word0 to word59"
    strange = [{name: _strange(value) for name, value in row.items()} for row in unlabelled(case)]
    if case.task != "causal_lm":  # whose tokenizer knows every byte
        found = prepare_inputs(data_of(case).rows, rows_of(strange), checkpoint_of(case), CONFIG)
        assert figures_of(found, checkpoint_of(case).tokenizer).unknown > 0.9


def _strange(value: Any) -> Any:
    return [_strange(part) for part in value] if isinstance(value, list) else value.replace("word", "слово")


def test_a_run_tells_of_its_calibration_data_and_on_how_much_it_fitted(
    tmp_path: Path, checkpoint: Path, data: Path
) -> None:
    rows = without_columns(tiny_rows(30, seed=5), "label")
    rows[:10] = [{"text": f"unheard of word{index}"} for index in range(10)]
    calibrate = DataSource(str(write_rows(tmp_path / "calibrate.jsonl", rows)), Columns(label="stars"))
    run = open_run(checkpoint, DataSource(str(data)), config=make_config("paper", COMPRESS), calibrate=calibrate)
    note, on_fit = run.notes
    assert note.startswith("calibration data: 1")
    tokens = int(run.calibration.samples.lengths.sum()) if run.calibration is not None else 0
    assert on_fit.startswith(
        f"weights are fitted to {tokens:,} tokens, {tokens / 48:.2g} for each of a block's 48 neurons;"
    )
    assert "% of its tokens are unknown to the tokenizer (validation data: 0.0%)" in note
    list(run.trials())
    report = run.publish(tmp_path / "result")
    told = report["refit"]
    assert (told["data"]["rows"], told["data"]["cut"]) == (30, 0)
    assert told["tokens"] == tokens
    fits = read_refit(tmp_path / "result").values()
    widest = max(fit.weight.shape[1] for fit in fits if fit.weight is not None)
    assert told["tokens_per_unknown"] == pytest.approx(told["tokens"] / widest)


def test_a_run_says_before_it_begins_what_it_cannot_fit() -> None:
    config, notes = make_config("paper", COMPRESS), {}
    for family in ("albert", "bert"):
        whole = checkpoint_of(Case(family, "classification"))
        many = rows_of(tiny_rows(200, labels=3))
        notes[family] = PruningRun(Inputs(whole, prepare(many, whole, config)), config).notes
    (note,) = notes["albert"]
    assert note.startswith("the layers of models of type 'albert' share their weights")
    assert notes["bert"] == [], "so many tokens suffice"


def test_the_command_tells_tokens_for_each_unknown_also_where_only_biases_were_fitted(
    tmp_path: Path, checkpoint: Path, data: Path
) -> None:
    few = write_rows(tmp_path / "few.jsonl", [{"text": "word1"}])
    arguments = ["prune", checkpoint, "--data", data, "--calibrate", few, "--output", tmp_path / "out"]
    knobs = [part for name, value in COMPRESS.items() for part in ("--set", f"{name}={json.dumps(value)}")]
    done = CliRunner().invoke(app, [*map(str, arguments), "--preset", "paper", "--forms", "compact", *knobs])
    assert done.exit_code == 0, done.output
    refit = json.loads((tmp_path / "out" / "report.json").read_text())["refit"]
    assert (refit["bias_only"], refit["blocks"], refit["tokens"]) == (refit["blocks"], refit["blocks"], 3)
    assert 0 < refit["tokens_per_unknown"] < 1
    (line,) = [line for line in done.output.splitlines() if line.startswith("Weights of ")]
    assert f"fitted on 3 tokens, at least {refit['tokens_per_unknown']:.1f} for each unknown" in line
    assert f"of {refit['blocks']} only the bias" in line
    assert line.endswith("give more rows, without labels, with --calibrate.")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "few; more rows to calibrate on, without labels, would help" in page


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({}, "calibrate is data to fit weights on, and method=axformer fits none without repair=refit; leave it out"),
        ({"method": "rank"}, "method=rank fits none without repair=refit"),
    ],
)
def test_it_is_refused_where_nothing_is_calibrated(
    knobs: dict[str, object], message: str, checkpoint: Path, data: Path
) -> None:
    source = DataSource(str(data))
    with pytest.raises(ConfigError, match=message):
        open_run(checkpoint, source, config=make_config("paper", knobs), calibrate=source)


def test_the_order_of_leaving_is_calibrated_too(checkpoint: Path, data: Path) -> None:
    source, config = DataSource(str(data)), make_config("paper", {**COMPRESS, "repair": "none"})
    assert open_run(checkpoint, source, config=config, calibrate=source).calibration is not None
