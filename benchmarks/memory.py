"""What a pass over MNLI's pairs and BERT-base keeps, computes again and spills, by arithmetic and by the cache itself.

    python -m benchmarks.memory

prints the tables of ``docs/workers.md``. Bytes are arithmetic. Blocks are counted: the trials of a pass are played with the
pass's own cache, whose tensors stand for those of a batch, so what it keeps and what a trial runs are what they would be.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import torch

from axformer.config import PassConfig
from axformer.devices import batch_tokens_in
from axformer.evaluation.activations import Activations, slots_of
from axformer.evaluation.budget import FREE_SHARE
from axformer.methods.axformer.ordering import inspection_order
from axformer.plan.elements import Dimensions, ElementKind

SAMPLES = 60_000
TOKENS = 41  # 39 on average, and 5 % of padding in batches sorted by length
PARAMETERS = 110_000_000
WIDTH, INTERMEDIATE, HEADS = 768, 3072, 12
FLOAT = 4
BERT_BASE = Dimensions(layers=12, heads=HEADS, hidden_size=WIDTH, intermediate_size=INTERMEDIATE)
BLOCKS = 2 * BERT_BASE.layers
BATCH_TOKENS = batch_tokens_in(16 * 2**30)
BATCHES = -(-SAMPLES * TOKENS // BATCH_TOKENS)
LONGEST = 512
GB = 1e9
BUDGETS = {  # bytes free when the pass begins, after the runtime and the model have theirs
    "all that there is to keep": 270 * GB,
    "80 GB GPU": 78 * GB,
    "24 GB of host memory": 22 * GB,
    "16 GB GPU": 15 * GB,
    "8 GB of host memory": 6 * GB,
}


@dataclass(frozen=True)
class Row:
    """What one budget comes to."""

    name: str
    budget: int
    slots: float
    """Of a batch, on average."""
    spilled: int
    blocks_only: float
    """Blocks run, over those of a pass that keeps everything, where no block is refined."""
    all_refined: float
    """The same where every block is refined."""


def input_bytes() -> int:
    """Bytes of one block's input for all samples."""
    return SAMPLES * TOKENS * WIDTH * FLOAT


def batch_bytes() -> int:
    """The most bytes of a batch's own activations in a layer: inputs, queries, keys, values and context, the FFN's inside
    before and after its activation function, attention scores and probabilities of the longest inputs."""
    width = 6 * WIDTH + 2 * INTERMEDIATE + 2 * HEADS * LONGEST
    return BATCH_TOKENS * width * FLOAT


def rows() -> Iterator[Row]:
    """A row of the table for each budget."""
    sizes = [input_bytes() // BATCHES] * BATCHES
    for name, free in BUDGETS.items():
        budget = int(FREE_SHARE * free)
        slots = slots_of(sizes, budget)
        spilled = sum(max(0, 2 - count) * size for count, size in zip(slots, sizes, strict=True))
        ratios = [_more_blocks(slots, is_refined=is_refined) for is_refined in (False, True)]
        yield Row(name, budget, sum(slots) / BATCHES, spilled, *ratios)


def _more_blocks(slots: list[int], *, is_refined: bool) -> float:
    """Blocks run over those of a pass that keeps everything."""
    blocks = sum(blocks_run(count, is_refined=is_refined) for count in slots)
    return blocks / (len(slots) * blocks_run(BLOCKS, is_refined=is_refined))


@cache
def blocks_run(slots: int, *, is_refined: bool) -> int:
    """Blocks that a batch with so many slots goes through in a whole pass: default order, nothing accepted or skipped."""
    activations = Activations([FLOAT], slots * FLOAT)
    return sum(_run_trial(activations, wanted, parts) for wanted, parts in _trials(is_refined=is_refined))


def _trials(*, is_refined: bool) -> Iterator[tuple[int, int]]:
    """The block that each trial changes, and how many trials of its parts follow."""
    yield BLOCKS, 0
    yield from ((2 * layer, 0) for layer in range(BERT_BASE.layers))
    for element in inspection_order(BERT_BASE, PassConfig()):
        yield 2 * element.layer + (element.kind is ElementKind.FFN), HEADS if is_refined else 0


def _run_trial(activations: Activations, wanted: int, parts: int) -> int:
    """Run a block's trial and those of its parts; gives the blocks that ran."""
    nearest = activations.nearest(0, wanted)
    start = nearest[0] if nearest else 0
    for block in range(start + 1, min(wanted, BLOCKS - 1) + 1):
        activations.offer(0, block, torch.empty(1), wanted)
    if parts:
        activations.keep_added(0, wanted, torch.empty(1), wanted)
    return BLOCKS - start + parts * (BLOCKS - wanted)


def tables() -> str:
    """The tables of ``docs/workers.md``."""
    lines = [
        "| what | how much | GB |",
        "|---|---|---|",
        f"| one block's input, all samples | {SAMPLES:,} x {TOKENS} x {WIDTH} x {FLOAT} | {input_bytes() / GB:.2f} |",
        f"| all {BLOCKS - 1} inputs above the embeddings | | {(BLOCKS - 1) * input_bytes() / GB:.1f} |",
        f"| the model's weights | {PARAMETERS:,} x {FLOAT} | {PARAMETERS * FLOAT / GB:.2f} |",
        f"| the layers packed for a CPU, and those cut, at most | twice as many | {2 * PARAMETERS * FLOAT / GB:.2f} |",
        f"| one batch's own activations, at most | `batch_tokens` {BATCH_TOKENS} | {batch_bytes() / GB:.2f} |",
        "",
        "| memory | `cache_budget`, GB | tensors a batch | in the file, GB | blocks run, none refined | all refined |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.name} | {row.budget / GB:.1f} | {row.slots:.2f} | {row.spilled / GB:.1f} | {row.blocks_only:.2f} x "
        f"| {row.all_refined:.2f} x |"
        for row in rows()
    ]
    trials = {is_refined: sum(1 + parts for _, parts in _trials(is_refined=is_refined)) for is_refined in (False, True)}
    whole = [BLOCKS * count / blocks_run(BLOCKS, is_refined=is_refined) for is_refined, count in trials.items()]
    lines.append(f"| no cache, whole forward passes | 0 | 0 | 0 | {whole[0]:.2f} x | {whole[1]:.2f} x |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(tables())
