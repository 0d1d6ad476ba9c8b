"""One measurement in a process of its own, so that memory and threads are those of this step alone.

python -m benchmarks.speed.child ASKED.json RUN.json
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from axformer.config import PassConfig, Preset, make_config
from axformer.data.reading import read_rows
from axformer.evaluation.base import Evaluator
from axformer.evaluation.multiply import multiplier
from axformer.forms.memory import peak_bytes
from axformer.intake.checkpoint import Checkpoint, load_checkpoint
from axformer.intake.dataset import DataSet, prepare
from axformer.methods.axformer.algorithm import search
from axformer.model.parameters import ParameterCount
from axformer.plan.elements import Dimensions, parse
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from benchmarks.speed.rounds import Asked, Evaluation, Run
from benchmarks.speed.steps import PAD_TO, ROWS, Step, step_named

_REPEATS = 5
_SQUARE_PROJECTIONS = 4  # query, key, value and output
_ATTENTION_ON_CPU = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_PACKED_LINEAR = torch.ops.mkldnn._linear_pointwise
Shape = tuple[int, int, int]


def measure(asked: Asked) -> Run:
    """Do one measurement.

    Raises:
        ValueError: there is no such step.
        InputError: checkpoint or data do not fit.
    """
    torch.set_num_threads(1 if asked.count else asked.threads)  # operations are seen in the main thread only
    step = step_named(asked.step)
    checkpoint = load_checkpoint(asked.checkpoint, "cpu")
    config = make_config(Preset.PUBLISHED, step.knobs)
    assert isinstance(config, PassConfig), "the steps are of Algorithm 1"
    work = _Work(asked, step, checkpoint, config, prepare(read_rows(asked.data), checkpoint, config))
    loaded = peak_bytes()
    if asked.count:
        return Run(step=step.name, flops=count_flops(work.once), loaded_bytes=loaded, peak_bytes=peak_bytes())
    run = work.evaluations() if asked.plans else work.whole_pass()
    held = peak_bytes()
    rate = matmul_rate(layer_shapes(checkpoint.dimensions, ROWS * PAD_TO))
    return run.model_copy(update={"loaded_bytes": loaded, "peak_bytes": held, "rates": {"float32": rate}})


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
        start = time.perf_counter()
        with self._step.evaluator(self._checkpoint, self._samples, self._config) as evaluator:
            trials = list(self._search(evaluator))
        seconds = time.perf_counter() - start
        return Run(step=self._step.name, seconds=seconds, trials=trials, loaded_bytes=0, peak_bytes=0)

    def evaluations(self) -> Run:
        """Some trials alone, each once, after the untouched model has run once without the clock."""
        with self._step.evaluator(self._checkpoint, self._samples, self._config) as evaluator:
            evaluator.losses(Plan.full(self._checkpoint.dimensions))
            taken = [self._evaluate(evaluator, seq) for seq in self._asked.plans]
        return Run(step=self._step.name, evaluations=taken, loaded_bytes=0, peak_bytes=0)

    def once(self) -> None:
        """The same work without a clock."""
        with self._step.evaluator(self._checkpoint, self._samples, self._config) as evaluator:
            if not self._asked.plans:
                list(self._search(evaluator))
            for seq in self._asked.plans:
                evaluator.losses(self._plan(seq))

    def _search(self, evaluator: Evaluator) -> Iterator[Trial]:
        count = ParameterCount(self._checkpoint.model, self._checkpoint.architecture)
        return search(evaluator, self._checkpoint.dimensions, self._config, parameters_left=count.left)

    def _evaluate(self, evaluator: Evaluator, seq: int) -> Evaluation:
        plan = self._plan(seq)
        start = time.perf_counter()
        losses = evaluator.losses(plan)
        return Evaluation(seq=seq, seconds=time.perf_counter() - start, loss=losses.mean().item())

    def _plan(self, seq: int) -> Plan:
        plan = Plan.full(self._checkpoint.dimensions)
        for element in self._asked.plans[seq]:
            plan = plan.apply(parse(element), top_k=self._config.attention_top_k)
        return plan


def count_flops(work: Callable[[], object]) -> int:
    """Operations of all matrix multiplications and attentions in ``work``; element-wise ones are not counted.

    A multiplication and an addition are two. PyTorch's counter knows the attention kernels of accelerators only.
    """
    own = {_ATTENTION_ON_CPU: _attention, _PACKED_LINEAR: _linear}
    with FlopCounterMode(display=False, custom_mapping=own) as counter:
        work()
    return int(counter.get_total_flops())


def _attention(query: torch.Size, key: torch.Size, value: torch.Size, *_: object, **__: object) -> int:
    return int(sdpa_flop_count(query, key, value))  # type: ignore[no-untyped-call]


def _linear(inputs: torch.Size, weight: torch.Size, *_: object, **__: object) -> int:
    return 2 * inputs.numel() * weight[0]


def layer_shapes(dimensions: Dimensions, tokens: int) -> list[Shape]:
    """The matrix multiplications of one layer's projections: rows, inputs and outputs of each."""
    hidden, inner = dimensions.hidden_size, dimensions.intermediate_size
    return [(tokens, hidden, hidden)] * _SQUARE_PROJECTIONS + [(tokens, hidden, inner), (tokens, inner, hidden)]


def matmul_rate(shapes: Iterable[Shape]) -> float:
    """Float32 operations a second of some matrix multiplications one after another, each at the median of several.

    With weights packed once, as in a pass: nothing is faster in PyTorch on a CPU.
    """
    operations, seconds = 0, 0.0
    known: dict[Shape, float] = {}
    for shape in shapes:
        if shape not in known:
            known[shape] = statistics.median(_multiply(shape))
        rows, inputs, outputs = shape
        operations += 2 * rows * inputs * outputs
        seconds += known[shape]
    return operations / seconds


@torch.inference_mode()
def _multiply(shape: Shape) -> list[float]:
    rows, inputs, outputs = shape
    left = torch.randn(rows, inputs)
    multiply = multiplier(nn.Linear(inputs, outputs))
    multiply(left)
    taken = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        multiply(left)
        taken.append(time.perf_counter() - start)
    return taken


def main(asked_file: Path, run_file: Path) -> None:
    """Read what is asked, measure, write what was found."""
    asked = Asked.model_validate_json(asked_file.read_text(encoding="utf-8"))
    run_file.write_text(measure(asked).model_dump_json(), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
