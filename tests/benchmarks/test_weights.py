"""Single weights leave as Table IV of the AxFormer paper says: the least important first, and for good."""

from pathlib import Path

import pytest
import torch

from axformer.config import reading_config
from axformer.data.reading import read_rows
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.scores.measured import measure
from benchmarks.grids.weights import ARMS, SCORES, STEP, STEPS, curve, leave, matrices_of
from benchmarks.pages import GRIDS
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows


def test_the_least_important_weights_leave_and_stay_away() -> None:
    matrices = [torch.tensor([[5.0, -1.0], [3.0, 2.0]]), torch.tensor([[-4.0, 6.0, 0.5, 7.0]])]
    scores = [matrix.abs() for matrix in matrices]
    leave(matrices, scores, 0.25)
    assert [matrix.tolist() for matrix in matrices] == [[[5.0, 0.0], [3.0, 2.0]], [[-4.0, 6.0, 0.0, 7.0]]]
    leave(matrices, [10 - score for score in scores], 0.375)
    assert [matrix.tolist() for matrix in matrices] == [[[5.0, 0.0], [3.0, 2.0]], [[-4.0, 6.0, 0.0, 0.0]]], "gone first"


@pytest.mark.parametrize("score", SCORES)
def test_a_curve_begins_with_the_untouched_model_and_ends_without_its_weights(score: str, tmp_path: Path) -> None:
    rows = read_rows(str(write_rows(tmp_path / "rows.jsonl", tiny_rows(24))))
    checkpoint = load_checkpoint(str(save_tiny_checkpoint(tmp_path / "model")), "cpu").for_rows(rows)
    data = prepare(rows, checkpoint, reading_config({}))
    untouched = measure(checkpoint.model, checkpoint.task, data.samples).figures
    path = curve(checkpoint, {"validation": data}, score)
    assert path[0] == {"share": 0.0, "validation": dict(untouched)}
    assert [point["share"] for point in path] == [pytest.approx(step * STEP) for step in range(STEPS + 1)]
    matrices = matrices_of(checkpoint)
    zeros = sum(int((one == 0).sum()) for one in matrices)
    count = sum(one.numel() for one in matrices)
    assert zeros == round(STEP * STEPS * count)
    shares = [float((one == 0).float().mean()) for one in matrices]
    assert (max(shares) - min(shares) < 0.01) == (score == "l1"), "only L1 takes the same share of each matrix"
    assert len({point["validation"]["loss"] for point in path}) == len(path)


def test_every_arm_has_a_score() -> None:
    assert ARMS.keys() == SCORES.keys()
    assert {cell.checkpoint.data for cell in GRIDS["weights"].GRID.cells} == {"rte", "stsb", "sst2"}
