"""What the page on memory says is what the arithmetic and the cache give, and it fits."""

from pathlib import Path

import pytest

from benchmarks import memory

PAGE = Path(__file__).parents[2] / "docs" / "workers.md"
HOST, GPU = "24 GB of host memory", "16 GB GPU"


def test_the_page_shows_the_table_of_today() -> None:
    assert memory.tables().partition("\n\n")[2] in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "memory_bytes"), [(HOST, 24e9), (GPU, 16e9)])
def test_all_of_it_fits(name: str, memory_bytes: float) -> None:
    (row,) = (row for row in memory.rows() if row.name == name)
    beside = memory_bytes - memory.BUDGETS[name]  # the runtime and the model's weights
    cut_layers = 2 * memory.PARAMETERS * memory.FLOAT
    assert beside > cut_layers
    assert beside + row.budget + cut_layers + memory.batch_bytes() < memory_bytes


def test_a_smaller_budget_runs_more_blocks_but_fewer_than_whole_passes() -> None:
    ratios = [row.blocks_only for row in memory.rows()]
    assert ratios == sorted(ratios)
    assert ratios[0] == 1
    trials = 1 + memory.BERT_BASE.layers + memory.BLOCKS
    assert memory.blocks_run(0, is_refined=False) < trials * memory.BLOCKS


def test_with_every_input_kept_a_trial_runs_what_it_changes_and_no_more() -> None:
    base, hard_attention, blocks = 24, sum(range(2, 25, 2)), sum(range(1, 25))
    assert memory.blocks_run(memory.BLOCKS, is_refined=False) == base + hard_attention + blocks
    assert memory.blocks_run(memory.BLOCKS, is_refined=True) == base + hard_attention + 13 * blocks
