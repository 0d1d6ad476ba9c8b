import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from axformer.architectures import hard_attention
from axformer.architectures.hard_attention import keep_top_k


def by_topk(probabilities: Tensor, k: int) -> Tensor:
    values, keys = probabilities.topk(k, dim=-1, sorted=False)
    return torch.zeros_like(probabilities).scatter(-1, keys, values)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_each_query_keeps_its_largest_probabilities_as_they_are(tokens: int, k: int, seed: int) -> None:
    torch.manual_seed(seed)
    soft = torch.randn(2, 3, tokens, tokens).softmax(-1)
    hard = keep_top_k(soft, k)
    kept = hard > 0
    assert torch.equal(hard[kept], soft[kept])
    assert torch.equal(kept.sum(-1), torch.full((2, 3, tokens), min(k, tokens)))
    smallest_kept = torch.where(kept, soft, 1.0).amin(-1)
    largest_gone = torch.where(kept, 0.0, soft).amax(-1)
    assert (smallest_kept >= largest_gone).all()


def test_with_as_many_keys_as_are_kept_nothing_changes() -> None:
    soft = torch.randn(1, 1, 4, 4).softmax(-1)
    assert torch.equal(keep_top_k(soft, 4), soft)


@given(st.integers(2, 70), st.data())
def test_sorting_keeps_what_topk_keeps_to_the_last_bit(tokens: int, data: st.DataObject) -> None:
    """With keys that are masked, and with probabilities that are equal."""
    k, seed = data.draw(st.integers(1, tokens - 1)), data.draw(st.integers(0, 999))
    masked, values = data.draw(st.integers(0, tokens - 1)), data.draw(st.sampled_from([2, 9, 10_000]))
    torch.manual_seed(seed)
    scores = torch.randint(values, (2, 3, tokens, tokens)).float() / values
    scores[..., tokens - masked :] = -torch.inf
    soft = scores.softmax(-1)
    assert torch.equal(keep_top_k(soft, k), by_topk(soft, k))


def test_many_cores_share_a_topk(monkeypatch: pytest.MonkeyPatch) -> None:
    soft = torch.rand(2, 3, 9, 9).softmax(-1)
    sorted_here = keep_top_k(soft, 4)
    monkeypatch.setattr(hard_attention, "SORTING_CORES", 0)
    monkeypatch.setattr(
        hard_attention, "_kept_by_sorting", lambda *_: pytest.fail("one core sorts while the others wait")
    )
    assert torch.equal(keep_top_k(soft, 4), sorted_here)


def test_what_is_kept_is_trained_and_nothing_else() -> None:
    soft = torch.rand(2, 3, 9, 9).softmax(-1).requires_grad_()
    hard = keep_top_k(soft, 4)
    (hard * 2).sum().backward()
    assert soft.grad is not None
    assert torch.equal(soft.grad, (hard > 0) * 2.0)


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace. is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_what_is_recorded_holds_for_other_numbers() -> None:
    one, other = torch.rand(2, 2, 3, 9, 9).softmax(-1)
    recorded = torch.jit.trace(lambda soft: keep_top_k(soft, 4), one)
    assert torch.equal(recorded(other), keep_top_k(other, 4))
