"""The laws of the kept activations: what comes back is what was offered, and a budget is never exceeded."""

import gc
import shutil
import weakref
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from axformer.data.batches import Batch
from axformer.errors import ConfigError
from axformer.evaluation.activations import Activations, input_bytes, slots_of

BLOCKS = 12
HIDDEN = 4
BYTES = 4

walks = st.tuples(st.just("walk"), st.integers(0, BLOCKS), st.integers(1, 4))
refinements = st.tuples(st.just("refine"), st.integers(0, BLOCKS - 1), st.integers(1, 4))
accepts = st.tuples(st.just("accept"), st.integers(0, BLOCKS - 1), st.just(0))


class Model:
    """Stands for a model and its data: the input of each block is random, and new once a block below it has changed."""

    def __init__(self, tokens: list[int]) -> None:
        self.tokens = tokens
        self.generator = torch.Generator().manual_seed(0)
        self.inputs: dict[tuple[int, int], Tensor] = {}

    def random(self, batch: int) -> Tensor:
        return torch.randn(self.tokens[batch], HIDDEN, generator=self.generator)

    def input(self, batch: int, block: int) -> Tensor:
        return self.inputs.setdefault((batch, block), self.random(batch))

    def change(self, block: int) -> None:
        self.inputs = {key: value for key, value in self.inputs.items() if key[1] <= block}


class Held:
    """Which of the tensors that were given away still live: those in memory, whatever the cache says of itself."""

    def __init__(self) -> None:
        self.given: list[weakref.ref[Tensor]] = []

    def give(self, tensor: Tensor) -> Tensor:
        mine = tensor.clone()
        self.given.append(weakref.ref(mine))
        return mine

    @property
    def bytes(self) -> int:
        return sum(
            tensor.untyped_storage().nbytes() for tensor in (given() for given in self.given) if tensor is not None
        )


def walk(activations: Activations, model: Model, held: Held, batch: int, wanted: int) -> None:
    """What a trial does with one batch, with checks of all that comes back."""
    nearest = activations.nearest(batch, wanted)
    start = nearest[0] if nearest else 0
    if nearest:
        assert start <= wanted
        assert torch.equal(nearest[1], model.input(batch, start))
    del nearest
    for block in range(start, min(wanted, BLOCKS - 1) + 1):
        activations.offer(batch, block, held.give(model.input(batch, block)), wanted)
    if 0 < wanted < BLOCKS:
        kept = activations.nearest(batch, wanted)
        assert kept is not None
        assert kept[0] == wanted
        assert torch.equal(kept[1], model.input(batch, wanted))


@given(
    tokens=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    share=st.floats(0, 1.2),
    steps=st.lists(st.one_of(walks, refinements, accepts), max_size=20),
    above=st.integers(0, 1),
)
@settings(deadline=None, max_examples=150)
def test_what_comes_back_is_what_was_offered_and_the_budget_holds(
    tmp_path_factory: pytest.TempPathFactory,
    tokens: list[int],
    share: float,
    steps: list[tuple[str, int, int]],
    above: int,
) -> None:
    sizes = [count * HIDDEN * BYTES for count in tokens]
    budget = int(share * (BLOCKS + 1) * sum(sizes))
    activations = Activations(sizes, budget, tmp_path_factory.getbasetemp())
    model, held, added = Model(tokens), Held(), dict[tuple[int, int], Tensor]()
    for what, block, batches in steps:
        if what == "accept":
            activations.forget_above(block)
            model.change(block)
            added = {key: value for key, value in added.items() if key[1] < block}
        for batch in range(min(batches, len(tokens)) if what != "accept" else 0):
            walk(activations, model, held, batch, block)
            if what == "refine":
                refined = block + above
                known = activations.added(batch, refined)
                assert known is None or torch.equal(known, added[batch, refined])
                del known
                added[batch, refined] = model.random(batch)
                activations.keep_added(batch, refined, held.give(added[batch, refined]), wanted=block)
                walk(activations, model, held, batch, block)
                again = activations.added(batch, refined)
                assert again is not None
                assert torch.equal(again, added[batch, refined])
                del again
            assert held.bytes <= activations.held_bytes <= budget


@given(st.lists(st.integers(1, 50), min_size=1, max_size=10), st.integers(0, 2000))
def test_slots_use_the_budget_and_no_more(sizes: list[int], budget: int) -> None:
    slots = slots_of(sizes, budget)
    used = sum(count * size for count, size in zip(slots, sizes, strict=True))
    assert used <= budget
    assert max(slots) - min(slots) <= 1
    assert all(
        size > budget - used for count, size in zip(slots, sizes, strict=True) if count == min(slots) < max(slots)
    )


def kept_blocks(activations: Activations) -> list[int]:
    found = (activations.nearest(0, block) for block in range(BLOCKS))
    return sorted({nearest[0] for nearest in found if nearest is not None})


def offer_all(activations: Activations, wanted: int, start: int = 1) -> None:
    for block in range(start, min(wanted, BLOCKS - 1) + 1):
        activations.offer(0, block, torch.zeros(1), wanted)


def distance(kept: list[int], blocks: int) -> int:
    """Blocks to run from what is kept to each block's input, all together."""
    edges = [0, *kept, blocks]
    return sum(gap * (gap - 1) // 2 for gap in (end - start for start, end in pairwise(edges)))


@pytest.mark.parametrize("slots", range(1, BLOCKS))
def test_a_first_walk_leaves_inputs_spread_over_the_model(slots: int) -> None:
    activations = Activations([BYTES], slots * BYTES)
    offer_all(activations, wanted=BLOCKS)
    kept = kept_blocks(activations)
    even = [round(BLOCKS * place / (slots + 1)) for place in range(1, slots + 1)]
    assert len(kept) == slots
    assert distance(kept, BLOCKS) <= 1.2 * distance(even, BLOCKS)


def test_the_wanted_block_wins_over_what_is_above_it_and_what_it_adds_over_what_is_below() -> None:
    activations = Activations([BYTES], 3 * BYTES)
    offer_all(activations, wanted=BLOCKS)
    assert kept_blocks(activations) == [4, 8, 10]
    offer_all(activations, wanted=7, start=5)
    assert kept_blocks(activations) == [4, 6, 7]
    activations.keep_added(0, 7, torch.zeros(1), wanted=7)
    assert kept_blocks(activations) == [4, 7]
    activations.keep_added(0, 7, torch.ones(1), wanted=7)
    assert kept_blocks(activations) == [4, 7]


def test_a_walk_to_another_block_ends_the_refinement() -> None:
    activations = Activations([BYTES], 0)
    offer_all(activations, wanted=7)
    activations.keep_added(0, 7, torch.ones(1), wanted=7)
    assert activations.added(0, 6) is None
    offer_all(activations, wanted=6)
    assert activations.added(0, 7) is None


def test_what_was_read_from_the_file_outlives_what_is_written_over_it() -> None:
    activations = Activations([BYTES], 0)
    offer_all(activations, wanted=5)
    nearest = activations.nearest(0, 7)
    assert nearest is not None
    activations.offer(0, 7, torch.ones(1), wanted=7)
    assert (nearest[0], nearest[1].item()) == (5, 0)
    assert activations.nearest(0, 6) is None


@pytest.mark.parametrize("slots", [0, 1])
def test_what_is_kept_is_not_written_anew_by_every_walk(slots: int) -> None:
    activations = Activations([BYTES], slots * BYTES)
    activations.offer(0, 7, torch.zeros(1), wanted=7)
    activations.offer(0, 7, torch.ones(1), wanted=7)
    nearest = activations.nearest(0, 7)
    assert nearest is not None
    assert nearest[1].item() == 0


def test_an_accepted_change_makes_what_its_block_adds_stale_but_not_its_input() -> None:
    activations = Activations([BYTES], 20 * BYTES)
    offer_all(activations, wanted=7)
    activations.keep_added(0, 7, torch.ones(1), wanted=7)
    activations.forget_above(8)
    assert activations.added(0, 7) is not None
    activations.forget_above(7)
    assert (kept_blocks(activations)[-1], activations.added(0, 7)) == (7, None)
    activations.forget_above(3)
    assert kept_blocks(activations) == [1, 2, 3]


def test_a_part_of_a_larger_tensor_does_not_keep_the_rest() -> None:
    activations = Activations([8 * BYTES], 16 * BYTES)
    large = torch.arange(1000.0).reshape(2, 500)
    activations.offer(0, 1, large[:, :4], wanted=2)
    kept = activations.nearest(0, 1)
    assert kept is not None
    assert kept[1].untyped_storage().nbytes() == 8 * BYTES
    assert torch.equal(kept[1], large[:, :4])


@pytest.mark.parametrize("budget", [0, 100])
def test_a_tensor_that_is_larger_than_its_batch_said_is_refused(budget: int) -> None:
    with pytest.raises(ValueError, match=r"of shape \(3,\) has 12 bytes; its batch said 4"):
        Activations([BYTES], budget).offer(0, 1, torch.zeros(3), wanted=1)


def mapped(directory: Path) -> int:
    """How many files of a directory this process maps into its memory, with a name or without."""
    return sum(str(directory) in line for line in Path("/proc/self/maps").read_text().splitlines())


def test_the_file_has_no_name_and_goes_with_the_cache(tmp_path: Path) -> None:
    activations = Activations([1000, 2000], 1999, tmp_path)
    assert activations.spilled_bytes == 1024 + 2 * 2048
    assert mapped(tmp_path) == 1
    assert list(tmp_path.iterdir()) == []
    del activations
    gc.collect()
    assert mapped(tmp_path) == 0


def test_the_file_goes_after_an_error(tmp_path: Path) -> None:
    def fail() -> None:
        Activations([BYTES], 0, tmp_path).offer(0, 1, torch.zeros(3), wanted=1)

    with pytest.raises(ValueError, match="its batch said"):
        fail()
    gc.collect()
    assert (list(tmp_path.iterdir()), mapped(tmp_path)) == ([], 0)


def test_with_room_for_both_there_is_no_file(tmp_path: Path) -> None:
    assert Activations([1000, 2000], 6000, tmp_path).spilled_bytes == 0
    assert mapped(tmp_path) == 0


def test_a_disk_without_room_is_refused_before_the_pass(tmp_path: Path) -> None:
    too_much = shutil.disk_usage(tmp_path).total
    with pytest.raises(ConfigError, match=f"cache_budget leaves {2 * too_much} bytes .* raise cache_budget, make room"):
        Activations([too_much], 0, tmp_path)


@pytest.mark.parametrize("slots", [0, 1, 2, 3, 30])
@torch.inference_mode()
def test_suffixes_from_kept_inputs_equal_whole_forward_passes_to_the_last_bit(slots: int) -> None:
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16)).eval() for _ in range(BLOCKS)]
    batches = [torch.randn(rows, 7, 16) for rows in (5, 3, 2)]
    activations = Activations([batch.nbytes for batch in batches], slots * sum(batch.nbytes for batch in batches))
    computed = 0
    for wanted in [BLOCKS, *range(0, BLOCKS, 2), *range(BLOCKS - 1, -1, -1), 5, 3, 9]:
        for place, batch in enumerate(batches):
            start, hidden = activations.nearest(place, wanted) or (0, batch)
            whole = batch
            for index, block in enumerate(blocks):
                if start < index <= wanted:
                    activations.offer(place, index, hidden, wanted)
                hidden = block(hidden) if index >= start else hidden
                whole = block(whole)
            computed += BLOCKS - start
            assert torch.equal(hidden, whole)
    assert computed < len(batches) * BLOCKS * (1 + BLOCKS // 2 + BLOCKS + 3)


def test_the_size_of_an_input_counts_every_choice_and_all_padding() -> None:
    ids = torch.zeros(2, 3, 5, dtype=torch.long)
    batch = Batch(rows=torch.arange(2), inputs={"input_ids": ids}, labels=torch.zeros(2))
    assert input_bytes(batch, hidden_size=8) == 2 * 3 * 5 * 8 * 4
