"""Single weights set to zero, the like-for-like counterpart of the AxFormer paper's Table IV.

The paper prunes "5 % of the least important weights at a time", keeps the best model, and does not train. Zeros in between save
neither time nor memory, so the product removes units; here weights leave as in the paper, by forward and backward passes alone.
The passes beside them are cells of the grid ``evidence``, with checkpoints of the same recipes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from axformer.config import reading_config
from axformer.data.batches import Samples
from axformer.data.reading import read_rows
from axformer.intake.checkpoint import Checkpoint, load_checkpoint
from axformer.intake.dataset import DataSet, prepare, prepare_like
from axformer.model.signals import Signals
from axformer.scores.measured import measure_sets
from benchmarks.checkpoints import checkpoint_named
from benchmarks.finetune import BASE
from benchmarks.grids.evidence import removed
from benchmarks.harness import Arm, Cell, Content, Grid, Place
from benchmarks.prune import rows_of, usual_metric
from benchmarks.tables import NONE, POINT, change, grouped, points, table, where, words

_SETS = ("rte", "stsb", "sst2")
STEP, STEPS = 0.05, 12
"""Up to 60 % of the weights leave; no best model of the paper's lies beyond."""
ARMS: Mapping[str, Arm] = {
    name: Arm(title=title, rows={"validation": 400})
    for name, title in (
        ("magnitude", "magnitude: of all matrices together"),
        ("l1", "L1: the same share of each matrix"),
        ("gradient", "gradient: abs(dL/dw)"),
        ("taylor", "Taylor: abs(w dL/dw)"),
    )
}
"""What decides which weights leave. The paper names the scores, and gives no formula of the first two."""


def _sizes(matrices: Sequence[Tensor], _: Checkpoint, __: Samples) -> list[Tensor]:
    return [matrix.detach().abs() for matrix in matrices]


def _ranks(matrices: Sequence[Tensor], _: Checkpoint, __: Samples) -> list[Tensor]:
    """The place of each weight in the order of its matrix, between 0 and 1."""
    found = []
    for matrix in matrices:
        order = matrix.detach().abs().flatten().argsort()
        places = torch.empty(len(order)).index_put_((order,), torch.arange(len(order)) / len(order))
        found.append(places.view_as(matrix))
    return found


def _slopes(matrices: Sequence[Tensor], checkpoint: Checkpoint, samples: Samples) -> list[Tensor]:
    """The absolute gradient of the mean loss."""
    sums = [torch.zeros_like(matrix) for matrix in matrices]
    for batch in samples.batches:
        with torch.enable_grad():
            loss = checkpoint.task.losses(checkpoint.model(**batch.inputs), batch).sum()
            for total, slope in zip(sums, torch.autograd.grad(loss, list(matrices)), strict=True):
                total += slope
    return [total.abs() for total in sums]


def _products(matrices: Sequence[Tensor], checkpoint: Checkpoint, samples: Samples) -> list[Tensor]:
    slopes = _slopes(matrices, checkpoint, samples)
    return [slope * matrix.detach().abs() for slope, matrix in zip(slopes, matrices, strict=True)]


SCORES: Mapping[str, Callable[[Sequence[Tensor], Checkpoint, Samples], list[Tensor]]] = {
    "magnitude": _sizes,
    "l1": _ranks,
    "gradient": _slopes,
    "taylor": _products,
}


def leave(matrices: Sequence[Tensor], scores: Sequence[Tensor], share: float) -> None:
    """Set this share of all weights to zero, those that are zero first, and then those with the lowest scores."""
    flat = torch.cat([score.where(matrix != 0, -1.0).flatten() for score, matrix in zip(scores, matrices, strict=True)])
    gone = torch.zeros(len(flat), dtype=torch.bool)
    gone[flat.argsort()[: round(share * len(flat))]] = True
    for matrix, of_matrix in zip(matrices, torch.split(gone, [one.numel() for one in matrices]), strict=True):
        matrix.data.masked_fill_(of_matrix.view_as(matrix), 0.0)


def matrices_of(checkpoint: Checkpoint) -> list[Tensor]:
    """The matrices of the blocks of a model, each once; they want gradients afterwards."""
    blocks = Signals.blocks_of(checkpoint.model, checkpoint.architecture)
    parts = [part.parameter for block in blocks for part in (*block.inputs, block.output)]
    return [one.requires_grad_() for one in {id(part): part for part in parts}.values() if one.dim() > 1]


def measured(cell: Cell, arm: Arm, place: Place) -> Content:
    """The figures of the untouched model, and of those without 5 % more of its weights, on deciding and held-out rows."""
    home = place.trained(cell.checkpoint)
    deciding, held_out = (read_rows(str(rows_of(cell.checkpoint, part, arm, place))) for part in ("validation", "test"))
    checkpoint = load_checkpoint(str(home), "cpu").for_rows(deciding)
    config = reading_config({"max_length": cell.checkpoint.max_length})
    first = prepare(deciding, checkpoint, config)
    sets = {"validation": first, "test": prepare_like(first, held_out, checkpoint, config)}
    path = curve(checkpoint, sets, cell.arm)
    return {"metric": usual_metric(cell.checkpoint, path[0]["test"]), "report": {"path": path}}


def curve(checkpoint: Checkpoint, sets: Mapping[str, DataSet], score: str) -> list[dict[str, Any]]:
    """The share of the weights that are zero, and the figures on each set, step by step; scores are taken anew each time."""
    matrices, path = matrices_of(checkpoint), []
    for step in range(STEPS + 1):
        if step:
            scores = SCORES[score](matrices, checkpoint, sets["validation"].samples)
            leave(matrices, scores, step * STEP)
        found = measure_sets(checkpoint.model, checkpoint.task, sets)
        path.append({"share": step * STEP} | {name: dict(one.figures) for name, one in found.items()})
    return path


GRID = Grid("weights", ARMS, [Cell(checkpoint_named(data).seeded(0), arm) for data in _SETS for arm in ARMS], measured)
_PASSES = ("paper", "published", "robust")
_SHARES = (4, 8, 12)
"""Steps whose change the table shows."""


def table_four(passes: Sequence[Content], cells: Sequence[Content]) -> str:
    """The counterpart of Table IV: weights by each score, and the passes, in points of the metric on held-out rows.

    Args:
        passes: cells of the grid ``evidence``.
        cells: of this grid.
    """
    rows = []
    for (data,), of_set in grouped(cells, "data").items():
        metric, path = of_set[0]["metric"], of_set[0]["report"]["path"]
        rows.append(
            [data, f"none ({words(metric)} {points(of_set[0], path[0]):.2f})", NONE, NONE, *[NONE for _ in _SHARES]]
        )
        for cell in of_set:
            path = cell["report"]["path"]
            best = max(path[1:], key=lambda point: point["validation"][metric])
            changes = [f"{change(cell, path[step]):+.2f}" for step in _SHARES]
            rows.append([data, ARMS[cell["arm"]].title, f"{best['share']:.0%}", f"{change(cell, best):+.2f}", *changes])
        for cell in where(passes, data=data, model=BASE, seed=0):
            if cell["arm"] in _PASSES:
                found = POINT * cell["report"]["comparison"]["test"]["differences"][cell["metric"]]["value"]
                gone = removed([cell])
                rows.append([data, f"the pass (`{cell['arm']}`)", gone, f"{found:+.2f}", *[NONE for _ in _SHARES]])
    shares = [f"{step * STEP:.0%}" for step in _SHARES]
    return table(["set", "what leaves by", "gone at the best", "change there", *shares], rows)
