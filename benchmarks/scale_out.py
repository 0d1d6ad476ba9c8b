"""How much faster a pass is when two processes of one core each share its samples, than one process of one core.

python -m benchmarks.scale_out --checkpoint DIR --data FILE

The time to start the processes, which load PyTorch anew, counts, and is told apart.
"""

import time
from pathlib import Path
from typing import Annotated

import torch
import typer

from axformer.config import Preset, make_config
from axformer.data.reading import read_rows
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.plan.trial import Trial
from axformer.run import PruningRun

PROCESSES = 2


def timed_pass(checkpoint: Path, data: Path, shards: int) -> tuple[float, list[Trial]]:
    """Seconds of a pass with model and data in memory, and its trials."""
    config = make_config(Preset.PUBLISHED)
    loaded = load_checkpoint(checkpoint, "cpu")
    run = PruningRun(loaded, prepare(read_rows(str(data)), loaded, config), None, config, shards)
    start = time.perf_counter()
    trials = list(run.trials())
    return time.perf_counter() - start, trials


def main(
    checkpoint: Annotated[Path, typer.Option(help="a fine-tuned checkpoint")],
    data: Annotated[Path, typer.Option(help="its validation set")],
    rounds: Annotated[int, typer.Option(min=1, help="how often both are measured, in turns")] = 2,
) -> None:
    """Measure both in turns, and print seconds and ratio of each round."""
    torch.set_num_threads(1)
    for turn in range(rounds):
        alone, trials = timed_pass(checkpoint, data, 1)
        shared, others = timed_pass(checkpoint, data, PROCESSES)
        running = trials[-1].seconds / others[-1].seconds
        pairs = zip(trials, others, strict=False)
        same = sum((one.element, one.verdict) == (other.element, other.verdict) for one, other in pairs)
        print(
            f"round {turn + 1}: one core {alone:.1f} s, {PROCESSES} processes {shared:.1f} s, {alone / shared:.2f} times as "
            f"fast, {running:.2f} times once they run; {same} of {len(trials)} verdicts the same",
            flush=True,
        )


if __name__ == "__main__":
    typer.run(main)
