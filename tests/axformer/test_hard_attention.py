import torch
from hypothesis import given
from hypothesis import strategies as st

from axformer.hard_attention import TOP_K_ATTRIBUTE, HardAttentionDropout, attention_forward, keep_top_k


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


def test_the_dropout_of_inline_attention_keeps_what_the_function_keeps() -> None:
    probabilities = torch.rand(2, 3, 4, 9).softmax(dim=-1)
    dropout = HardAttentionDropout.in_place_of(torch.nn.Dropout(0.1).eval())
    assert torch.equal(dropout(probabilities), probabilities)
    setattr(dropout, TOP_K_ATTRIBUTE, 4)
    assert torch.equal(dropout(probabilities), keep_top_k(probabilities, 4))
    output = torch.rand(4, 2, 9)
    assert torch.equal(dropout(output), output), "what is not attention goes through as it is"


def test_grouped_queries_share_keys_and_values() -> None:
    query, key, value = torch.rand(2, 4, 5, 8), torch.rand(2, 2, 5, 8), torch.rand(2, 2, 5, 8)
    grouped, _ = attention_forward(torch.nn.Module(), query, key, value, None)
    alone = [
        attention_forward(torch.nn.Module(), query[:, [h]], key[:, [h // 2]], value[:, [h // 2]], None)
        for h in range(4)
    ]
    torch.testing.assert_close(grouped, torch.cat([context for context, _ in alone], dim=2))
