"""Measure all steps on one set in turns, so that whatever else the machine does falls on all of them alike.

In a round each step has one turn, the fastest first: its trace says which plans the whole-forward steps are measured on.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from axformer.config import Preset
from axformer.plan.trial import Trial, Verdict
from benchmarks.speed.steps import Step


class Record(BaseModel):
    """Plain data that can be written and read again."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Asked(Record):
    """One measurement."""

    step: str
    checkpoint: str
    """Its directory."""
    data: str
    """JSON Lines of the validation set."""
    threads: int
    plans: dict[int, list[str]] = Field(default_factory=dict)
    """Evaluate these alone, each once: elements in the order they were changed, by the number of the trial. Empty: run the
    whole pass."""
    count: bool = False
    """Count floating-point operations, on one core; nothing is timed then."""


class Evaluation(Record):
    """One plan over all samples."""

    seq: int
    """The number of the trial."""
    loss: float
    seconds: float


class Run(Record):
    """One measurement, done in a process of its own."""

    step: str
    seconds: float | None = None
    """Of the whole pass, with model, data and batches in memory; null where single trials were evaluated."""
    trials: list[Trial] = Field(default_factory=list)
    """Of the whole pass."""
    evaluations: list[Evaluation] = Field(default_factory=list)
    """Single trials."""
    flops: int | None = None
    """Of the whole pass, or of all evaluations together; a multiplication and an addition are two."""
    loaded_bytes: int
    """Most memory that the process had held when model and data were ready."""
    peak_bytes: int
    """Most memory that it had held at the end."""
    rates: dict[str, float] = Field(default_factory=dict)
    """Matrix multiplications of the model's shapes right after it, in operations a second, by arithmetic."""


class Agreement(Record):
    """How a step's trials compare with those of a reference."""

    step: str
    reference: str
    trials: int
    same: int | None
    """Trials with the same element and verdict; null where single trials were evaluated, and losses alone are compared."""
    loss_difference: float | None
    """Largest relative difference of the mean losses, over trials that both measured to the end; null where there is none."""


Ask = Callable[[Asked], Run]


@dataclass(frozen=True)
class Setting:
    """What all measurements on one set have in common."""

    checkpoint: Path
    data: Path
    threads: int

    def asked(self, step: Step, plans: dict[int, list[str]] | None = None, *, count: bool = False) -> Asked:
        """One measurement."""
        return Asked(
            step=step.name,
            checkpoint=str(self.checkpoint),
            data=str(self.data),
            threads=self.threads,
            plans=plans or {},
            count=count,
        )


def ask_child(asked: Asked) -> Run:
    """Measure in a new process.

    Raises:
        RuntimeError: it failed; the message holds the last of what it said.
    """
    with tempfile.TemporaryDirectory(prefix="axformer-bench-") as directory:
        question, answer = Path(directory) / "asked.json", Path(directory) / "run.json"
        question.write_text(asked.model_dump_json(), encoding="utf-8")
        command = [sys.executable, "-m", "benchmarks.speed.child", str(question), str(answer)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise RuntimeError(f"step '{asked.step}' on {asked.data} ended with code {done.returncode}: {last}")
        return Run.model_validate_json(answer.read_text(encoding="utf-8"))


def plans_of(trials: Sequence[Trial]) -> dict[int, list[str]]:
    """What each trial evaluated, by its number: the elements accepted before it, and its own."""
    accepted: list[str] = []
    plans = {}
    for trial in trials:
        if trial.element is not None:
            plans[trial.seq] = [*accepted, trial.element]
            if trial.verdict is Verdict.ACCEPT:
                accepted.append(trial.element)
    return plans


def spread_out(plans: Mapping[int, list[str]], number: int, turn: int, turns: int) -> dict[int, list[str]]:
    """Some plans from all over the pass, others in every turn, as far as there are enough.

    Args:
        plans: those of the pass, in order.
        number: how many a turn.
        turn: which turn it is, from 0.
        turns: how many there are.
    """
    wanted = number * turns
    places = [len(plans) * (2 * place + 1) // (2 * wanted) for place in range(turn, wanted, turns)]
    seqs = list(plans)
    return {seqs[place]: plans[seqs[place]] for place in places}


def run_rounds(ask: Ask, setting: Setting, steps: Sequence[Step], rounds: int) -> list[list[Run]]:
    """The runs of each round, in the order of the steps.

    Args:
        ask: does one measurement.
        setting: on what.
        steps: slowest first; the last runs a whole pass.
        rounds: how many.
    """
    plans: dict[int, list[str]] = {}
    found: list[list[Run]] = []
    for turn in range(rounds):
        runs = []
        for step in reversed(steps):
            single = step.evaluations
            run = ask(setting.asked(step, spread_out(plans, single, turn, rounds) if single else None))
            plans = plans or plans_of(run.trials)
            runs.append(run)
            told = f"{run.seconds:.1f} s" if run.seconds is not None else f"{len(run.evaluations)} single trials"
            print(f"  round {turn + 1}, {step.name}: {told}", flush=True)
        found.append(runs[::-1])
    return found


def count_operations(ask: Ask, setting: Setting, steps: Sequence[Step], trace: Sequence[Trial]) -> dict[str, int]:
    """Floating-point operations of a whole pass, by step. One trial of whole forward passes has as many as any other."""
    plans, found = plans_of(trace), {}
    for step in steps:
        is_single = step.evaluations is not None
        run = ask(setting.asked(step, spread_out(plans, 1, 0, 1) if is_single else None, count=True))
        assert run.flops is not None, "operations were asked for"
        found[step.name] = run.flops * (len(trace) if is_single else 1)
    return found


def agreements_of(rounds: Sequence[Sequence[Run]], reference: Sequence[Trial], name: str) -> list[Agreement]:
    """Each step's verdicts beside those of a reference; of several rounds the one that agrees least.

    Args:
        rounds: all runs.
        reference: a whole pass; that of one of the runs is not compared with itself.
        name: of the reference.
    """
    least: dict[str, Agreement] = {}
    for run in (run for runs in rounds for run in runs if run.trials is not reference):
        found = compare(run, reference, name)
        if run.step not in least or _agreed(found) < _agreed(least[run.step]):
            least[run.step] = found
    return list(least.values())


def _agreed(agreement: Agreement) -> tuple[float, float]:
    """Sorts agreements, the worst first."""
    return (agreement.same or 0) / agreement.trials, -(agreement.loss_difference or 0.0)


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
        if one.element == other.element and not one.loss_is_bound and not other.loss_is_bound
    ]
    return _agreement(run.step, name, max(len(run.trials), len(reference)), same, pairs)


def _agreement(step: str, reference: str, trials: int, same: int | None, pairs: list[tuple[float, float]]) -> Agreement:
    differences = [abs(one - other) / other for one, other in pairs]
    largest = max(differences) if differences else None
    return Agreement(step=step, reference=reference, trials=trials, same=same, loss_difference=largest)


def oracle_trials(oracle: Path, setting: Setting) -> list[Trial]:
    """The pass of the naive reference beside the project, which evaluates every trial with a whole forward pass.

    Raises:
        RuntimeError: it failed.
    """
    trace = setting.data.with_suffix(".oracle.jsonl")
    command = [sys.executable, str(oracle), str(setting.checkpoint), str(setting.data), "--out", str(trace)]
    environment = os.environ | {"OMP_NUM_THREADS": str(setting.threads)}
    done = subprocess.run(
        [*command, "--preset", Preset.PUBLISHED], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"the naive reference {oracle} failed: {done.stderr.strip().splitlines()[-1]}")
    lines = trace.read_text(encoding="utf-8").splitlines()
    return [Trial(**json.loads(line), parameters=0) for line in lines]  # it counts no parameters
