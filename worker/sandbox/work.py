"""The work on one job in the confined process: load, search, train, publish, and report to the worker.

Each trial is sent at once. Where work takes long, the process polls for messages of the worker, which takes microseconds.
"""

import errno
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from safetensors import SafetensorError

from axformer.analyzing import write_analysis
from axformer.devices import (
    AUTO,
    CPU_BATCH_TOKENS,
    batch_tokens_in,
    batch_tokens_of,
    gpu_memory,
    resolve_device,
    why_no_gpu,
)
from axformer.errors import is_out_of_memory
from axformer.evaluation.budget import free_bytes, total_bytes
from axformer.intake.footprint import Footprint, RunWork, at_ease, largest_part, least, smallest, with_models
from axformer.intake.sizes import read_data_sizes, read_sizes
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial, Verdict
from axformer.pulse import felt_by
from axformer.run import PruningRun
from axformer.surroundings import Surroundings
from axformer.wire.run import DATA, Run
from axformer.wire.states import JobKind
from axformer.wire.steps import Step
from worker.sandbox.analyses import carry_out, first_look, open_inputs
from worker.sandbox.errors import Reason
from worker.sandbox.lines import PipeEnd
from worker.sandbox.messages import (
    REFUSALS,
    Alive,
    Begin,
    Failed,
    GoAhead,
    JobOrder,
    Memory,
    MemoryEstimate,
    Message,
    Opened,
    PlanSpeed,
    Published,
    Ready,
    Refused,
    Searched,
    Shape,
    StoredTrials,
    Trained,
    TrialMade,
    Working,
    cut,
)
from worker.sandbox.turn import WorkersTurn, receive

_HEADS = "heads"
"""The report that takes gradients; without names, all reports are made."""
_STEP_SECONDS = 1.0
"""Least seconds between two reports of one step."""
_ALIVE_SECONDS = 5.0
"""Least seconds between two signs of life."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def serve(lines: PipeEnd, begin: Callable[[], None] = lambda: None) -> None:
    """Serve one job, or none if the worker ends first.

    Args:
        begin: called when the job arrives.
    """
    try:
        _send(lines, _ready())
        order = receive(lines)
        begin()
        assert isinstance(order, JobOrder), "an order comes first"
        _work(lines, order)
    except (EOFError, BrokenPipeError):
        return  # the worker has ended or has given up this job
    except Exception as error:  # noqa: BLE001 - every error is reported to the worker
        _send_error(lines, error)


def _ready() -> Ready:
    host_bytes, gpu_bytes = total_bytes("cpu"), gpu_memory()
    if resolve_device(AUTO).startswith("cuda"):
        return Ready(auto="cuda", host_bytes=host_bytes, gpu_bytes=gpu_bytes)
    return Ready(auto="cpu", no_gpu=cut(why_no_gpu()), host_bytes=host_bytes)


def _send_error(lines: PipeEnd, error: Exception) -> None:
    message: Message
    name = next((name for name, kind in REFUSALS.items() if isinstance(error, kind)), None)
    if name is not None:
        message = Refused(error=name, message=cut(str(error)))
    else:
        detail = "".join(traceback.format_exception(error))
        message = Failed(reason=reason_of(error), detail=cut(detail, end=True))
    try:
        _send(lines, message)
    except BrokenPipeError:
        sys.stderr.write("the worker ended before an error could be reported\n")


def reason_of(error: Exception) -> Reason:
    """Classify an error of a library."""
    if is_out_of_memory(error):
        return "out_of_memory"
    return "disk_full" if _is_disk_full(error) else "unforeseen"


def _is_disk_full(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in _NO_SPACE
    # Safetensors quotes the system's error number in the text of its own error.
    return isinstance(error, SafetensorError) and any(f"(os error {number})" in str(error) for number in _NO_SPACE)


def _work(lines: PipeEnd, order: JobOrder) -> None:
    _send(lines, _memory_estimate(order))
    receive(lines, GoAhead)
    turn = WorkersTurn(lines)
    alive = _Alive(lines)

    def check() -> None:
        alive()
        turn.check()

    around = Surroundings(Path(order.state), _Steps(lines), check, turn, turn.clock)
    with felt_by(alive):
        _KINDS[order.kind](lines, order, around)


def _prune(lines: PipeEnd, order: JobOrder, around: Surroundings) -> None:
    """Run the pass after a first look, which refuses a model that is worse than guessing."""
    run = _open(order, around)
    look = run.look()
    notes = [*run.notes, *([] if look.note is None else [look.note])]
    _send(lines, _opened(run, notes, look.sentence))
    _search(lines, run, _stored(lines), around)
    _finish(lines, order, run, around)


def _export(lines: PipeEnd, order: JobOrder, around: Surroundings) -> None:
    """Write the model after one trial of another job's pass."""
    run = _open(order, around)
    run.labels, run.points = order.labels, order.points
    _send(lines, _opened(run, run.notes, None))
    for _ in run.trials(_stored(lines), around, upto=order.upto):
        around.check_cancelled()
    _send(lines, _searched(run))
    _finish(lines, order, run, around)


def _analyze(lines: PipeEnd, order: JobOrder, around: Surroundings) -> None:
    """Make the reports on a model; those that an earlier process has finished are taken over."""
    inputs = open_inputs(order)
    _send(
        lines, Opened(notes=(), first_look=cut(first_look(inputs)), shape=Shape(**vars(inputs.checkpoint.dimensions)))
    )
    receive(lines, Begin)
    analysis = carry_out(order, inputs, around)
    _send(lines, Trained())
    write_analysis(analysis, Path(order.output))
    _send(lines, Published(report=analysis.model_dump(mode="json")))


_KINDS: Mapping[JobKind, Callable[[PipeEnd, JobOrder, Surroundings], None]] = {
    JobKind.PASS: _prune,
    JobKind.EXPORT: _export,
    JobKind.ANALYSIS: _analyze,
}


def _finish(lines: PipeEnd, order: JobOrder, run: PruningRun, around: Surroundings) -> None:
    run.repair(around)
    _send(lines, Trained())
    _send(lines, Published(report=run.publish(Path(order.output), order.settled.forms, around.on_step)))


def _opened(run: PruningRun, notes: Sequence[str], first_look: str | None) -> Opened:
    return Opened(
        notes=tuple(cut(note) for note in notes),
        first_look=None if first_look is None else cut(first_look),
        shape=Shape(**vars(run.dimensions)),
    )


def _memory_estimate(order: JobOrder) -> MemoryEstimate:
    device, analysis = resolve_device(order.device), order.analysis
    run = order.settled.run if analysis is None else analysis.run
    head = run.head if isinstance(run, Run) else None
    sizes = read_sizes(Path(order.paths["checkpoint"]), head)
    files = {part: Path(path) for part, path in order.paths.items() if part in DATA}
    data = read_data_sizes(files, order.knobs, sizes.dimensions.intermediate_size)
    batch_tokens, on_gpu = batch_tokens_of(device), device.startswith("cuda")
    models = 1 if "against" not in order.paths else 2  # of the same shape, or it is refused
    work = RunWork(
        order.knobs,
        order.settled.finetune if analysis is None else None,
        takes_gradients=analysis is not None and _HEADS in (analysis.run.reports or (_HEADS,)),
        has_new_head=head is not None,
    )

    def need(of: Callable[..., Footprint], tokens: int, *, on_gpu: bool) -> Footprint:
        return with_models(of(sizes, data, work, tokens, on_gpu=on_gpu), sizes, models, on_gpu=on_gpu)

    return MemoryEstimate(
        least=_memory(need(least, batch_tokens, on_gpu=on_gpu)),
        at_ease=_memory(need(at_ease, batch_tokens, on_gpu=on_gpu)),
        fits=Memory(
            host_bytes=need(least, CPU_BATCH_TOKENS, on_gpu=False).host_bytes,
            device_bytes=smallest(lambda memory: need(least, batch_tokens_in(memory), on_gpu=True).device_bytes),
        ),
        total=Memory(host_bytes=total_bytes("cpu"), device_bytes=total_bytes(device) if on_gpu else 0),
        free=Memory(host_bytes=free_bytes("cpu"), device_bytes=free_bytes(device) if on_gpu else 0),
        parameters=sizes.parameters,
        data_bytes=data.total,
        largest=largest_part(sizes, data, work, batch_tokens, on_gpu=on_gpu),
    )


def _memory(footprint: Footprint) -> Memory:
    return Memory(host_bytes=footprint.host_bytes, device_bytes=footprint.device_bytes)


def _open(order: JobOrder, around: Surroundings) -> PruningRun:
    settled = order.settled
    return PruningRun.open(
        settled, paths=order.paths, device=resolve_device(order.device), names=order.names, surroundings=around
    )


def _stored(lines: PipeEnd) -> list[Trial]:
    trials: list[Trial] = []
    while isinstance(message := receive(lines, StoredTrials, Begin), StoredTrials):
        trials += message.trials
    return trials


def _search(lines: PipeEnd, run: PruningRun, stored: list[Trial], around: Surroundings) -> None:
    """Send each new trial, and that there are no more."""
    for index, trial in enumerate(run.trials(stored, around)):
        if index < len(stored):
            continue
        is_changed = trial.verdict in (Verdict.BASE, Verdict.ACCEPT) or index == len(stored)
        _send(lines, TrialMade(trial=trial, speed=_speed(run, run.plan) if is_changed else None))
        if around.turn.is_over():
            around.turn.wait()
    _send(lines, _searched(run))


class _Alive:
    """Tells the worker that the process is at work, not more than once every few seconds."""

    def __init__(self, lines: PipeEnd) -> None:
        self._lines = lines
        self._at = time.monotonic()

    def __call__(self) -> None:
        """Tell it if it is due."""
        now = time.monotonic()
        if now - self._at >= _ALIVE_SECONDS:
            _send(self._lines, Alive())
            self._at = now


class _Steps:
    """Sends steps to the worker: one as it begins and as it ends, and between them not more than one a second."""

    def __init__(self, lines: PipeEnd) -> None:
        self._lines = lines
        self._sent: Step | None = None
        self._at = float("-inf")

    def __call__(self, step: Step) -> None:
        """Send a step if it is due."""
        last = self._sent
        is_new = last is None or (step.name, step.detail) != (last.name, last.detail)
        if is_new or step.done == step.known or time.monotonic() - self._at >= _STEP_SECONDS:
            _send(self._lines, Working(step=step))
            self._sent, self._at = step, time.monotonic()


def _searched(run: PruningRun) -> Searched:
    """What the search came to: the model that is kept, which confirming rows may have chosen from the path."""
    kept = next(point.seq for point in run.decisions.path if point.kept)
    return Searched(note=run.closing_note, kept=kept, speed=_speed(run, run.plan))


def _speed(run: PruningRun, plan: Plan) -> PlanSpeed:
    targets = run.decisions.targets
    return PlanSpeed(operations=targets.operations(plan), estimated_speedup=targets.speedup(plan))


def _send(lines: PipeEnd, message: Message) -> None:
    lines.send(message.line())
