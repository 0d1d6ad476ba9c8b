"""Measure all steps on one set in turns, so that whatever else the machine does falls on all of them alike.

In a round each step has one turn, the fastest first: its trace says which plans the whole-forward steps are measured on.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from axformer.trial import Trial
from benchmarks.speed.agreement import compare, oracle_trials
from benchmarks.speed.plans import plans_of, spread_out
from benchmarks.speed.record import Agreement, Asked, Run
from benchmarks.speed.steps import DYNAMIC, Step, step_named

Ask = Callable[[Asked], Run]


@dataclass(frozen=True)
class Setting:
    """What all measurements on one set have in common."""

    checkpoint: Path
    data: Path
    device: str
    threads: int

    def asked(self, step: Step, plans: dict[int, list[str]] | None = None, *, count: bool = False) -> Asked:
        """One measurement."""
        return Asked(
            step=step.name,
            checkpoint=str(self.checkpoint),
            data=str(self.data),
            device=self.device,
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


def run_rounds(ask: Ask, setting: Setting, steps: Sequence[Step], rounds: int, *, whole: bool) -> list[list[Run]]:
    """The runs of each round, in the order of the steps.

    Args:
        ask: does one measurement.
        setting: on what.
        steps: slowest first; the last runs a whole pass.
        rounds: how many.
        whole: run steps of whole forward passes to the end too.
    """
    plans: dict[int, list[str]] = {}
    found: list[list[Run]] = []
    for turn in range(rounds):
        runs = []
        for step in reversed([step for step in steps if step.every_round or turn == 0]):
            single = None if whole or step.evaluations is None else step.evaluations
            run = ask(setting.asked(step, spread_out(plans, single, turn, rounds) if single else None))
            plans = plans or plans_of(run.trials)
            runs.append(run)
            print(f"  round {turn + 1}, {step.name}: {_told(run)}", flush=True)
        found.append(runs[::-1])
    return found


def count_operations(ask: Ask, setting: Setting, steps: Sequence[Step], trace: Sequence[Trial]) -> dict[str, int]:
    """Floating-point operations of a whole pass, by step, where all of it is in one arithmetic.

    One trial of whole forward passes has as many as any other.
    """
    plans = plans_of(trace)
    counted = {}
    for step in (step for step in steps if step.arithmetic == "float32"):
        is_single = step.evaluations is not None
        run = ask(setting.asked(step, spread_out(plans, 1, 0, 1) if is_single else None, count=True))
        assert run.flops is not None, "operations were asked for"
        counted[step.name] = run.flops * (len(trace) if is_single else 1)
        print(f"  {step.name}: {counted[step.name] / 1e12:.2f} TFLOP", flush=True)
    return counted


def reference_of(rounds: Sequence[Sequence[Run]]) -> Run:
    """The run whose verdicts the others are compared with: a whole pass of the slowest step that has one."""
    return next(run for run in rounds[0] if run.trials)


def agreements_of(rounds: Sequence[Sequence[Run]], reference: Run) -> list[Agreement]:
    """Each step's verdicts beside those of the reference; of several rounds the one that agrees least."""
    least: dict[str, Agreement] = {}
    for run in (run for runs in rounds for run in runs if run is not reference):
        found = compare(run, reference.trials, reference.step)
        if run.step not in least or _agreed(found) < _agreed(least[run.step]):
            least[run.step] = found
    return list(least.values())


def compare_with_whole(
    ask: Ask, setting: Setting, steps: Sequence[Step], oracle: Path | None
) -> tuple[str, list[Agreement]]:
    """All verdicts of the steps that targets are for, beside those of a pass of whole forwards.

    Args:
        ask: does one measurement.
        setting: with few enough rows.
        steps: of them those are compared that run a whole pass in every round.
        oracle: the naive reference; null takes the step with dynamic padding.

    Returns:
        The name of the reference, and a comparison a step.
    """
    if oracle is None:
        name, reference = DYNAMIC, ask(setting.asked(step_named(DYNAMIC))).trials
    else:
        name = oracle.name
        reference = oracle_trials(oracle, setting.checkpoint, setting.data, setting.threads)
    chosen = [step for step in steps if step.evaluations is None and step.every_round]
    return name, [compare(ask(setting.asked(step)), reference, name) for step in chosen]


def _agreed(agreement: Agreement) -> tuple[float, float]:
    """Sorts agreements, the worst first."""
    same = 0 if agreement.same is None else agreement.same
    return same / agreement.trials, -(agreement.loss_difference or 0.0)


def _told(run: Run) -> str:
    if run.trials:
        return f"{len(run.trials)} trials in {run.seconds:.1f} s"
    return f"single trials in {', '.join(f'{one.seconds:.2f}' for one in run.evaluations)} s"
