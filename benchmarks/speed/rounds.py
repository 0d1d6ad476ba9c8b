"""Measure all steps on one set in turns, so that whatever else the machine does falls on all of them alike.

In a round each step has one turn, the fastest first: its trace says which plans the whole-forward steps are measured on.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from axformer.plan.trial import Trial
from benchmarks.speed.agreement import compare
from benchmarks.speed.plans import plans_of, spread_out
from benchmarks.speed.record import Agreement, Asked, Run
from benchmarks.speed.steps import Step

Ask = Callable[[Asked], Run]


@dataclass(frozen=True)
class Setting:
    """What all measurements on one set have in common."""

    checkpoint: Path
    data: Path
    device: str
    threads: int

    def asked(
        self, step: Step, plans: dict[int, list[str]] | None = None, *, count: bool = False, by_kind: bool = False
    ) -> Asked:
        """One measurement."""
        return Asked(
            step=step.name,
            checkpoint=str(self.checkpoint),
            data=str(self.data),
            device=self.device,
            threads=self.threads,
            plans=plans or {},
            count=count,
            by_kind=by_kind,
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
        for step in reversed(steps):
            single = None if whole or step.evaluations is None else step.evaluations
            run = ask(setting.asked(step, spread_out(plans, single, turn, rounds) if single else None))
            plans = plans or plans_of(run.trials)
            runs.append(run)
            print(f"  round {turn + 1}, {step.name}: {_told(run)}", flush=True)
        found.append(runs[::-1])
    return found


def count_operations(ask: Ask, setting: Setting, steps: Sequence[Step], trace: Sequence[Trial]) -> dict[str, int]:
    """Floating-point operations of a whole pass, by step, where all of it is in one arithmetic.

    One trial of whole forward passes has as many as any other. Each step takes one core and no clock runs, so as many are
    counted side by side as there are cores.
    """
    plans = plans_of(trace)

    def counted(step: Step) -> int:
        is_single = step.evaluations is not None
        run = ask(setting.asked(step, spread_out(plans, 1, 0, 1) if is_single else None, count=True))
        assert run.flops is not None, "operations were asked for"
        return run.flops * (len(trace) if is_single else 1)

    chosen = [step for step in steps if step.arithmetic == "float32"]
    with ThreadPoolExecutor(setting.threads) as pool:
        return dict(zip((step.name for step in chosen), pool.map(counted, chosen), strict=True))


def reference_of(rounds: Sequence[Sequence[Run]]) -> Run:
    """The run whose verdicts the others are compared with: a whole pass of the slowest step that has one."""
    return next(run for run in rounds[0] if run.trials)


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
    same = 0 if agreement.same is None else agreement.same
    return same / agreement.trials, -(agreement.loss_difference or 0.0)


def _told(run: Run) -> str:
    if run.trials:
        return f"{len(run.trials)} trials in {run.seconds:.1f} s"
    return f"single trials in {', '.join(f'{one.seconds:.2f}' for one in run.evaluations)} s"
