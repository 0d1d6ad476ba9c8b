"""One measurement in a process of its own, so that memory and threads are those of this step alone.

python -m benchmarks.speed.child ASKED.json RUN.json
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from axformer.config import PassConfig, Preset, make_pass_config
from axformer.data.reading import read_rows
from axformer.evaluation.base import Evaluator
from axformer.forms.memory import device_peak_bytes, peak_bytes
from axformer.intake.checkpoint import Checkpoint, load_checkpoint
from axformer.intake.dataset import DataSet, prepare
from axformer.methods.axformer.algorithm import search
from axformer.model.parameters import ParameterCount
from axformer.plan.elements import parse
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from benchmarks.speed.flops import count_flops
from benchmarks.speed.machine import ARITHMETICS, layer_shapes, matmul_rate, wait_for
from benchmarks.speed.operations import seconds_by_kind
from benchmarks.speed.padding import ROWS
from benchmarks.speed.record import Asked, Evaluation, Run
from benchmarks.speed.steps import PAD_TO, Step, step_named


def measure(asked: Asked) -> Run:
    """Do one measurement.

    Raises:
        ValueError: there is no such step.
        InputError: checkpoint or data do not fit.
    """
    is_alone = asked.count or asked.by_kind  # operations are seen in the main thread only
    torch.set_num_threads(1 if is_alone else asked.threads)
    step = step_named(asked.step)
    checkpoint = load_checkpoint(asked.checkpoint, asked.device)
    config = make_pass_config(Preset.PUBLISHED, step.knobs)
    data = prepare(read_rows(asked.data), checkpoint, config)
    work = _Work(asked, step, checkpoint, config, data)
    loaded = peak_bytes()
    if asked.count:
        return Run(step=step.name, flops=count_flops(work.once), loaded_bytes=loaded, peak_bytes=peak_bytes())
    if asked.by_kind:
        kinds = seconds_by_kind(work.once)
        return Run(step=step.name, kinds=kinds, rates=work.rates(), loaded_bytes=loaded, peak_bytes=peak_bytes())
    run = work.evaluations() if asked.plans else work.whole_pass()
    held = {"peak_bytes": peak_bytes(), "device_peak_bytes": device_peak_bytes(asked.device)}
    return run.model_copy(update={"loaded_bytes": loaded, "rates": work.rates(), **held})


class _Work:
    """What one step does."""

    def __init__(self, asked: Asked, step: Step, checkpoint: Checkpoint, config: PassConfig, data: DataSet) -> None:
        self._asked = asked
        self._step = step
        self._checkpoint = checkpoint
        self._config = config
        self._samples = step.samples(checkpoint, data)

    def whole_pass(self) -> Run:
        """A pass from its first trial to its last, with the clock running."""
        start = self._now()
        with self._evaluator() as evaluator:
            trials = list(self._search(evaluator))
        return Run(
            step=self._step.name, seconds=self._now() - start, trials=trials, loaded_bytes=0, peak_bytes=peak_bytes()
        )

    def evaluations(self) -> Run:
        """Some trials alone, each once, after the untouched model has run once without the clock."""
        with self._evaluator() as evaluator:
            evaluator.losses(Plan.full(self._checkpoint.dimensions))
            taken = [self._evaluate(evaluator, seq) for seq in self._asked.plans]
        return Run(step=self._step.name, evaluations=taken, loaded_bytes=0, peak_bytes=peak_bytes())

    def once(self) -> None:
        """The same work without a clock."""
        with self._evaluator() as evaluator:
            if not self._asked.plans:
                list(self._search(evaluator))
            for seq in self._asked.plans:
                evaluator.losses(self._plan(seq))

    def rates(self) -> dict[str, float]:
        """What the machine multiplies at this moment, in shapes of this model and of a batch of the slowest step."""
        shapes = layer_shapes(self._checkpoint.dimensions, ROWS * PAD_TO)
        return {name: matmul_rate(shapes, self._asked.device) for name in ARITHMETICS}

    def _evaluator(self) -> Evaluator:
        return self._step.evaluator(self._checkpoint, self._samples, self._config)

    def _search(self, evaluator: Evaluator) -> Iterator[Trial]:
        count = ParameterCount(self._checkpoint.model, self._checkpoint.architecture)
        return search(evaluator, self._checkpoint.dimensions, self._config, parameters_left=count.left)

    def _evaluate(self, evaluator: Evaluator, seq: int) -> Evaluation:
        plan = self._plan(seq)
        start = self._now()
        losses = evaluator.losses(plan)
        return Evaluation(seq=seq, seconds=self._now() - start, loss=losses.mean().item())

    def _plan(self, seq: int) -> Plan:
        plan = Plan.full(self._checkpoint.dimensions)
        for element in self._asked.plans[seq]:
            plan = plan.apply(parse(element), top_k=self._config.attention_top_k)
        return plan

    def _now(self) -> float:
        wait_for(self._asked.device)
        return time.perf_counter()


def main(asked_file: Path, run_file: Path) -> None:
    """Read what is asked, measure, write what was found."""
    asked = Asked.model_validate_json(asked_file.read_text(encoding="utf-8"))
    run_file.write_text(measure(asked).model_dump_json(), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
