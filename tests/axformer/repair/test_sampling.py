"""Laws of the order of rows in a training."""

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from axformer.repair.finetune import POOL, ByLength

rows = st.lists(st.integers(1, 500), min_size=1, max_size=300)


@given(rows, st.integers(1, 40), st.integers(0, 2**32 - 1), st.integers(0, 99))
def test_every_row_comes_once_in_an_order_of_seed_and_epoch_alone(
    lengths: list[int], size: int, seed: int, epoch: int
) -> None:
    sampler, again = ByLength(lengths, size, seed), ByLength(lengths, size, seed)
    list(again)  # what came before changes nothing
    for one in (sampler, again):
        one.set_epoch(epoch)
    drawn = list(sampler)
    assert sorted(drawn) == list(range(len(lengths)))
    assert list(again) == drawn


def test_rows_of_similar_length_come_together_and_batches_in_no_order_of_length() -> None:
    draw = random.Random(0)
    lengths, size = [draw.randint(1, 128) for _ in range(POOL * 32 * 2)], 32
    drawn = list(ByLength(lengths, size, seed=0))
    batches = [[lengths[row] for row in drawn[start : start + size]] for start in range(0, len(drawn), size)]
    padded = sum(max(batch) * len(batch) for batch in batches)
    assert padded < 1.1 * sum(lengths)
    longest = [max(batch) for batch in batches]
    rises = sum(after > before for before, after in itertools.pairwise(longest))
    assert 0.4 * len(batches) < rises < 0.6 * len(batches)


def test_epochs_and_seeds_differ() -> None:
    lengths = list(range(1, 200))
    orders = []
    for seed, epoch in ((0, 0), (0, 1), (1, 0)):
        sampler = ByLength(lengths, 8, seed)
        sampler.set_epoch(epoch)
        orders.append(tuple(sampler))
    assert len(set(orders)) == 3
