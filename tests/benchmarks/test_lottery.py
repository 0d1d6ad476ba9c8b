"""The benchmark of lottery tickets: what a round removes stays removed, and its document."""

from typing import Any

import pytest
import torch

from benchmarks.lottery import (
    DOCUMENT,
    RESULTS,
    document_of,
    projections,
    read_curves,
    remove_smallest,
    rewind,
    tickets,
    weights_left,
)
from tests.tiny_models import tiny_config, tiny_model


def step(model: Any) -> None:
    """A step of training."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1)
    model(input_ids=torch.tensor([[2, 5, 6, 3]]), labels=torch.tensor([1])).loss.backward()
    optimizer.step()
    model.zero_grad()


def test_a_round_removes_the_smallest_weights_of_the_whole_encoder_for_good() -> None:
    model, start = tiny_model(), dict(tiny_model(seed=1).named_parameters())
    before = torch.cat([one.weight.detach().flatten() for one in projections(model)]).abs()
    ends = [before.numel()]
    for number, ticket in enumerate(tickets(model, start, step, rounds=2, share=0.3)):
        if number == 0:
            assert weights_left(ticket) == ends[0]
            continue
        after = torch.cat([one.weight.detach().flatten() for one in projections(ticket)])
        ends.append(weights_left(ticket))
        assert ends[-1] == pytest.approx(0.7 * ends[-2], abs=1)
        if number == 1:
            assert before[after == 0].max() <= before[after != 0].min()
        assert int((after == 0).sum()) == ends[0] - ends[-1]


def test_what_is_left_goes_back_to_where_the_training_began() -> None:
    model, start = tiny_model(), dict(tiny_model(tiny_config(), seed=1).named_parameters())
    remove_smallest(model, 0.5)
    rewind(model, start)
    for name, module in model.named_modules():
        if hasattr(module, "weight_mask"):
            assert torch.equal(module.weight_orig, start[f"{name}.weight"])
    assert torch.equal(model.classifier.weight, start["classifier.weight"])


def test_the_document_is_what_the_curves_give() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document_of(read_curves(RESULTS))
