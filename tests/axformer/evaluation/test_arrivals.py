"""Parts arrive whole and in order, however far ahead the device is."""

from collections.abc import Iterator

import torch
from hypothesis import given
from hypothesis import strategies as st

from axformer.evaluation.base import arriving


@given(st.integers(0, 6), st.integers(0, 4), st.integers(0, 6))
def test_no_more_is_computed_than_may_be_ahead(batches: int, ahead: int, taken: int) -> None:
    computed = 0

    def compute() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        nonlocal computed
        for place in range(batches):
            computed += 1
            yield torch.tensor([place]), torch.tensor([float(place)])

    parts = arriving(compute(), ahead)
    seen = [part for part, _ in zip(parts, range(taken), strict=False)]
    assert [part.places.item() for part in seen] == [part.losses.item() for part in seen]
    assert [part.places.item() for part in seen] == list(range(min(batches, taken)))
    assert computed <= taken + 1 + ahead
