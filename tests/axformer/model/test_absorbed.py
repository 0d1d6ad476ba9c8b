"""The law of absorbed attention: without keys and values it brings together what plain attention does."""

from types import SimpleNamespace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from axformer.architectures.base import PlainAttention
from axformer.architectures.hard_attention import READ_ATTRIBUTE, TOP_K_ATTRIBUTE, attention_forward
from axformer.model.one_position import context_at

HIDDEN, SIZE = 24, 6


@given(
    st.integers(1, 4), st.integers(1, 5), st.integers(1, 9), st.none() | st.integers(1, 9), st.booleans(), st.booleans()
)
@settings(deadline=None, max_examples=60)
@torch.inference_mode()
def test_absorbed_equals_plain(
    heads: int, rows: int, tokens: int, top_k: int | None, has_mask: bool, has_bias: bool
) -> None:
    torch.manual_seed(heads + 10 * rows + 100 * tokens)
    query, key, value = (nn.Linear(HIDDEN, heads * SIZE, bias=has_bias) for _ in range(3))
    hidden, read = torch.randn(rows, tokens, HIDDEN), torch.randint(tokens, (rows,))
    mask = torch.zeros(rows, 1, tokens, tokens)
    mask[..., tokens // 2 + 1 :] = torch.finfo(torch.float32).min

    def by_head(projection: nn.Linear) -> torch.Tensor:
        return projection(hidden).view(rows, tokens, heads, SIZE).transpose(1, 2)

    module = SimpleNamespace(training=False, **{READ_ATTRIBUTE: read, TOP_K_ATTRIBUTE: top_k})
    given_mask = mask if has_mask else None
    parts = by_head(query), by_head(key), by_head(value)
    plain, _ = attention_forward(module, *parts, given_mask, scaling=SIZE**-0.5)  # type: ignore[arg-type]
    found = context_at(PlainAttention(query, key, value, heads, SIZE**-0.5, top_k), hidden, given_mask, read)
    assert torch.allclose(found, plain[:, :1].flatten(start_dim=2), rtol=1e-4, atol=1e-5)
