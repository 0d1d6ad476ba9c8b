"""Whether two ways to run a pass decide alike."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from axformer.config import Preset
from axformer.plan.trial import Trial
from benchmarks.speed.record import Agreement, Run


def compare(run: Run, reference: Sequence[Trial], name: str) -> Agreement:
    """A step's trials beside those of a reference.

    Args:
        run: of the step, a whole pass or single trials.
        reference: a whole pass over the same rows.
        name: what the reference is called.
    """
    if not run.trials:
        known = {trial.seq: trial.loss for trial in reference if not trial.loss_is_bound}
        pairs = [(one.loss, known[one.seq]) for one in run.evaluations if one.seq in known]
        return _agreement(run.step, name, len(run.evaluations), None, pairs)
    both = list(zip(run.trials, reference, strict=False))
    same = sum((one.element, one.verdict) == (other.element, other.verdict) for one, other in both)
    pairs = [
        (one.loss, other.loss)
        for one, other in both
        if (one.element, one.precision) == (other.element, other.precision)
        and not one.loss_is_bound
        and not other.loss_is_bound
    ]
    return _agreement(run.step, name, max(len(run.trials), len(reference)), same, pairs)


def _agreement(step: str, reference: str, trials: int, same: int | None, pairs: list[tuple[float, float]]) -> Agreement:
    differences = [abs(one - other) / other for one, other in pairs]
    largest = max(differences) if differences else None
    return Agreement(step=step, reference=reference, trials=trials, same=same, loss_difference=largest)


def oracle_trials(oracle: Path, checkpoint: Path, data: Path, threads: int) -> list[Trial]:
    """The pass of the naive reference beside the project, which evaluates every trial with a whole forward pass.

    Raises:
        RuntimeError: it failed.
    """
    trace = data.with_suffix(".oracle.jsonl")
    command = [sys.executable, str(oracle), str(checkpoint), str(data), "--out", str(trace)]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [*command, "--preset", Preset.PUBLISHED], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"the naive reference {oracle} failed: {done.stderr.strip().splitlines()[-1]}")
    lines = trace.read_text(encoding="utf-8").splitlines()
    return [Trial(**json.loads(line), parameters=0) for line in lines]  # it counts no parameters
