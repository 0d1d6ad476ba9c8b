"""Sensitivity: how strongly the predictions depend on what a block adds, by direction.

A small change e of a block's output y at one token changes the predictions by a divergence of about e^T F e / 2. F is the
Fisher information of the model's own predictions with respect to y at that token, so no label is used. Its mean over the tokens
says which errors of a block matter (the second factor of K-FAC: Martens and Grosse, *Optimizing Neural Networks with
Kronecker-factored Approximate Curvature*, 2015; for pruning van der Ouderaa and others, *The LLM Surgeon*, 2024).
"""

from collections.abc import Callable

import torch
from torch import Tensor

from axformer.data.batches import Samples
from axformer.intake.checkpoint import Checkpoint
from axformer.model.signals import Signals
from axformer.repair.refit import matrix_of
from axformer.tasks.divergence import probe

EVENLY = 0.05
"""Share of the mean of the diagonal that is added to it: errors that are not small matter in other directions too."""


def sensitivities(
    checkpoint: Checkpoint, samples: Samples, check_cancelled: Callable[[], None] = lambda: None
) -> list[Tensor]:
    """The mean Fisher information with respect to the output of each block, shape (outputs, outputs), float64.

    Args:
        checkpoint: the untouched model, which is not changed.
        samples: the data; its labels are not used.
        check_cancelled: called before each batch.
    """
    signals = Signals(checkpoint.model, checkpoint.architecture, samples)
    backs = [to_outputs(matrix_of(block)) for block in signals.blocks()]
    found = [torch.zeros(len(back), len(back), dtype=torch.float64, device=back.device) for back in backs]
    for batch, slopes in signals.slopes(
        lambda output, batch: probe(checkpoint.task.predicted(output, batch), batch.rows)
    ):
        check_cancelled()
        real = batch.inputs["attention_mask"].flatten(end_dim=-2).bool()
        for back, (_, slope), total in zip(backs, slopes, found, strict=True):
            gradients = slope[real] @ back.T
            total += (gradients.T @ gradients).double()
    return [total / int(samples.lengths.sum()) for total in found]


def evened(information: Tensor) -> Tensor:
    """The information with a share of its mean diagonal added, which makes it positive definite."""
    added = max(EVENLY * float(information.diagonal().mean()), 1e-30)
    return information + added * torch.eye(len(information), dtype=information.dtype, device=information.device)


def to_outputs(matrix: Tensor) -> Tensor:
    """The matrix that turns the derivative by x into that by y = W x, as far as x can change y; shape (outputs, columns)."""
    inverse: Tensor = torch.linalg.pinv(matrix.double())
    return inverse.T.to(matrix.dtype)
