"""Copies of an input are on one side of every split, and count once where rows are counted."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axformer.config import make_config
from axformer.data.batches import Samples
from axformer.data.columns import DataSource
from axformer.data.encoding import without_labels
from axformer.data.reading import rows_of
from axformer.errors import ConfigError, InputError
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare, prepare_inputs
from axformer.intake.parts import FEW_INPUTS, split_off
from axformer.methods.axformer.judge import folds_of
from axformer.opening import Inputs
from axformer.repair.refit import CHECKED_EVERY, Calibration
from axformer.run import PruningRun
from axformer.scores.certificate import certify
from axformer.scores.measured import Measured, compare, measure
from axformer.scores.task_tests import paired_test
from axformer.tasks.standing import Choices, better_order
from tests.runs import open_run
from tests.tiny_models import answering_model, save_tiny_checkpoint, tiny_rows, tiny_tokenizer, write_rows

CHECKPOINT = from_memory(answering_model(2), tiny_tokenizer())
DIFFERENT = list({str(row["text"]): row for row in tiny_rows(5000, seed=3)}.values())
"""Rows with texts that are all different."""
COMPRESS = {"method": "compress", "budgets": [0.7], "confirm": 0.4, "within_points": 5.0}
ROWS, COPIES = st.integers(20, 5000), st.integers(1, 50)


def ids_of(rows: int, copies: int, seed: int) -> list[list[int]]:
    """Token ids of so many rows, which hold each input about so many times, in any order."""
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed)) // copies
    return [[5, place, 6] for place in order.tolist()]


def samples_of(ids: list[list[int]]) -> Samples:
    encoded = without_labels({"input_ids": ids})
    return Samples((), encoded, torch.tensor(encoded.sample_of_row), torch.tensor(encoded.lengths))


def repeated(rows: list[dict[str, object]], copies: int) -> list[dict[str, object]]:
    return [rows[place % len(rows)] for place in range(len(rows) * copies)]


@given(ROWS, COPIES, st.integers(0, 9))
@settings(deadline=None, max_examples=40)
def test_one_row_votes_for_each_input(rows: int, copies: int, seed: int) -> None:
    ids = ids_of(rows, copies, seed)
    samples = samples_of(ids)
    inputs = -(-rows // copies)
    assert sorted(ids[place][1] for place in samples.voters.nonzero().flatten().tolist()) == list(range(inputs))
    assert int(samples.inputs.max()) + 1 == inputs
    assert all((samples.inputs == samples.inputs[place]).sum() <= copies for place in range(0, rows, 500))
    if copies == 1:
        assert samples.voters.all()
        assert samples.inputs.tolist() == samples.first_rows.tolist() == list(range(rows))


@given(ROWS, COPIES, st.integers(2, 10))
@settings(deadline=None, max_examples=30)
def test_folds_and_the_rows_that_choose_a_ridge_hold_all_copies(rows: int, copies: int, folds: int) -> None:
    samples = samples_of(ids_of(rows, copies, seed=1))
    inputs = int(samples.voters.sum())
    if inputs >= folds:
        fold = folds_of(inputs, folds, seed=0)
        assert len(fold[samples.inputs]) == rows
        assert copies > 1 or torch.equal(fold[samples.inputs], folds_of(rows, folds, seed=0))
    checks = samples.first_rows % CHECKED_EVERY == 0
    for number in range(0, inputs, 100):
        assert len(set(checks[samples.inputs == number].tolist())) == 1
    assert copies > 1 or torch.equal(checks, torch.arange(rows) % CHECKED_EVERY == 0)
    assert torch.equal(Calibration(samples)._first_rows, samples.first_rows)


@given(st.integers(20, 5000), COPIES, st.floats(0.05, 0.5), st.integers(0, 5))
@settings(deadline=None, max_examples=12)
def test_the_part_that_confirms_shares_no_input_with_the_one_that_decides(
    rows: int, copies: int, share: float, seed: int
) -> None:
    texts = DIFFERENT[: max(4, rows // copies)]
    config = make_config("paper", {"confirm": share, "seed": seed})
    data = prepare(rows_of(repeated(texts, copies)), CHECKPOINT, config)
    if int(share * len(texts)) == 0:
        with pytest.raises(ConfigError, match=f"of the {len(texts)} different inputs in the validation rows is less"):
            split_off(prepare(rows_of(repeated(texts, 2)), CHECKPOINT, config), CHECKPOINT, config)
        return
    deciding, confirming = split_off(data, CHECKPOINT, config)
    assert confirming is not None
    parts = [set(part.samples.encoded.keys) for part in (deciding, confirming)]
    assert not parts[0] & parts[1]
    assert len(parts[1]) == int(share * len(texts))
    assert len(deciding.rows) + len(confirming.rows) == copies * len(texts)


@pytest.mark.slow
@given(st.integers(20, 60), st.integers(2, 50), st.integers(0, 4))
@settings(deadline=None, max_examples=15)
def test_copies_change_neither_tests_nor_intervals(rows: int, copies: int, seed: int) -> None:
    """Two models, and the same two on the same rows with copies."""
    chance, task = np.random.default_rng(seed), CHECKPOINT.task
    config = make_config("paper")
    answers = chance.integers(2, size=(2, rows))
    found = []
    for times in (1, copies):
        samples = prepare(rows_of(repeated(DIFFERENT[:rows], times)), CHECKPOINT, config).samples
        losses = torch.linspace(0, 1, rows, dtype=torch.float64).repeat(times)
        found.append([Measured(losses, np.tile(one, times).tolist(), task, samples) for one in answers])
    once, often = (compare(*pair) for pair in found)
    assert once.mcnemar == often.mcnemar
    for name, one in once.differences.items():
        assert often.differences[name].value == pytest.approx(one.value)
        assert often.differences[name].interval == pytest.approx(one.interval)
    certificates = [
        certify([one.votes for one in pair], paired_test(pair[0].votes, task, 30.0), 30.0, [0, 1], [2.0, 1.0])[1]
        for pair in found
    ]
    assert certificates[0] == certificates[1]
    assert certificates[1].rows == rows


def test_of_copies_with_different_labels_one_speaks_for_all() -> None:
    rows = [{**row, "label": label} for row in DIFFERENT[:40] for label in (0, 1)]
    samples = prepare(rows_of(rows), CHECKPOINT, make_config("paper")).samples
    table = measure(CHECKPOINT.model, CHECKPOINT.task, samples).votes
    assert len(table) == 40
    assert 5 < (table[:, 1] == 1).sum() < 35, "neither always the first nor always the last"


def test_an_order_of_classes_is_found_and_tested_on_different_inputs() -> None:
    """Four texts whose labels are the wrong way round are a handful, however often they stand there."""
    labels = np.tile([0, 1, 0, 1], 50)
    flipped = Choices(labels, 1 - labels, np.arange(200), 200, 2)
    assert better_order(flipped, range(200)) is not None
    assert better_order(flipped, [place % 4 for place in range(200)]) is None


def test_forty_texts_a_thousand_times_certify_nothing() -> None:
    config = make_config("smallest", {**COMPRESS, "table_rows": 16})
    run = PruningRun(Inputs(CHECKPOINT, prepare(rows_of(repeated(DIFFERENT[:40], 25)), CHECKPOINT, config)), config)
    repeats, few, _, points, drawn = run.notes
    assert "its 1,000 rows hold 40 different inputs" in repeats
    assert "only 24 different inputs decide" in few
    assert "weights are fitted to 24 of its 600 rows, each input once" in drawn
    assert "16 confirming rows cannot show so small a fall" in points
    list(run.trials())
    certificate = run.decisions.certificate
    assert certificate is not None
    assert (certificate.rows, certificate.kept, certificate.p_value) == (16, 0, None)


def test_rows_that_models_were_made_with_certify_nothing(tmp_path: Path) -> None:
    checkpoint = save_tiny_checkpoint(tmp_path / "checkpoint")
    data = DataSource(str(write_rows(tmp_path / "data.jsonl", DIFFERENT[:200])))
    config = make_config("smallest", {**COMPRESS, "within_points": 100.0, "accept_poor_model": True, "table_rows": 16})
    certificates = {}
    for name, calibrate in {"other": DIFFERENT[200:400], "same": DIFFERENT[:200]}.items():
        texts = write_rows(tmp_path / f"{name}.jsonl", [{"text": row["text"]} for row in calibrate])
        run = open_run(checkpoint, data, config=config, calibrate=DataSource(str(texts)))
        list(run.trials())
        certificates[name] = run.decisions.certificate
    other, same = certificates["other"], certificates["same"]
    assert other is not None
    assert same is not None
    assert other.kept > 0
    assert (same.kept, same.tested, same.p_value) == (0, 0, None)
    assert "of its 80 rows 80 are also among the calibration rows" in same.sentence


@pytest.mark.parametrize("preset", ["robust", "paper", "smallest"])
def test_one_input_decides_nothing(preset: str) -> None:
    rows = [{"text": "word1 word2", "label": place % 2} for place in range(60)]
    config = make_config(preset)
    with pytest.raises(InputError, match="has the same input in its 60 rows, and rows that decide must differ"):
        PruningRun(Inputs(CHECKPOINT, prepare(rows_of(rows), CHECKPOINT, config)), config)


def test_fewer_inputs_than_parts_are_refused_and_few_are_told() -> None:
    robust, paper = make_config("robust"), make_config("paper")
    two = prepare(rows_of(repeated(DIFFERENT[:2], 30)), CHECKPOINT, robust)
    with pytest.raises(ConfigError, match="safeguard=5 is more than the 2 different inputs among the rows that decide"):
        list(PruningRun(Inputs(CHECKPOINT, two), robust).trials())
    for inputs in (FEW_INPUTS - 1, FEW_INPUTS):
        run = PruningRun(Inputs(CHECKPOINT, prepare(rows_of(DIFFERENT[:inputs]), CHECKPOINT, paper)), paper)
        assert any(f"only {inputs} different inputs decide" in note for note in run.notes) == (inputs < FEW_INPUTS)


def test_deciding_rows_that_calibrate_are_drawn_as_those_of_their_own() -> None:
    """The same rows as deciding and as calibration data give the same model, which the capped draw alone decides."""
    config = make_config("smallest", {**COMPRESS, "confirm": 0.0, "within_points": None, "calibrate_rows": 25})
    data = prepare(rows_of(DIFFERENT[:100]), CHECKPOINT, config)
    drawn = PruningRun(Inputs(CHECKPOINT, data), config)
    list(drawn.trials())
    assert len(drawn._ground.calibration) == 25
    assert any("weights are fitted to 25 of its 100 rows, drawn at random" in note for note in drawn.notes)
    own = prepare_inputs(data.rows, data.rows.at(sorted(_places(drawn, data.samples))), CHECKPOINT, config)
    other = PruningRun(Inputs(CHECKPOINT, data, calibration=own), config)
    list(other.trials())
    assert other.plan == drawn.plan
    weights = [run.compact_model().state_dict() for run in (drawn, other)]
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())


def _places(run: PruningRun, samples: Samples) -> list[int]:
    return [samples.encoded.keys.index(key) for key in run._ground.calibration.encoded.keys]
