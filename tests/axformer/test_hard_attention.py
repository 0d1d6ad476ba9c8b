import torch
from hypothesis import given
from hypothesis import strategies as st

from axformer.hard_attention import keep_top_k


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
