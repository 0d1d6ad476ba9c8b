"""The work on one job inside the walls: load, search, train, publish, and tell the worker of it as it goes.

Trials are sent as they come, and nothing is waited for between them: a look at what the worker has sent takes microseconds.
"""

import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from axformer.data.source import DataSource
from axformer.devices import AUTO, batch_tokens_of, resolve_device
from axformer.errors import AxFormerError
from axformer.evaluation.budget import free_bytes, total_bytes
from axformer.intake.footprint import Footprint, at_ease, least
from axformer.intake.sizes import read_sizes
from axformer.methods.axformer.orders import passes_in
from axformer.plan.trial import Trial, Verdict
from axformer.run import PruningRun
from worker.sandbox.clock import PassClock
from worker.sandbox.lines import Lines
from worker.sandbox.messages import (
    FROM_WORKER,
    Begin,
    Estimate,
    Failed,
    GoAhead,
    GoOn,
    Memory,
    Message,
    Opened,
    Order,
    Promise,
    Published,
    Ready,
    Refused,
    Replay,
    Searched,
    Shape,
    Source,
    Suspend,
    Suspended,
    Trained,
    Tried,
    cut,
)
from worker.sandbox.reasons import error_name, reason_of


def serve(lines: Lines, begin: Callable[[], None] = lambda: None) -> None:
    """Serve one job, or none where the worker ends first.

    Args:
        lines: to the worker.
        begin: called when there is a job.
    """
    try:
        _say(lines, Ready(auto="cuda" if resolve_device(AUTO).startswith("cuda") else "cpu"))
        order = _hear(lines)
        begin()
        assert isinstance(order, Order), "an order comes first"
        _work(lines, order)
    except (EOFError, BrokenPipeError):
        return  # the worker has ended, or wants no more of this
    except Exception as error:  # noqa: BLE001 - whatever it is, the worker is told
        _tell_of(lines, error)


def _tell_of(lines: Lines, error: Exception) -> None:
    said: Message
    if isinstance(error, AxFormerError) and (name := error_name(error)) is not None:
        said = Refused(error=name, message=cut(str(error)))
    else:
        detail = "".join(traceback.format_exception(error))
        said = Failed(reason=reason_of(error), detail=cut(detail, end=True))
    try:
        _say(lines, said)
    except BrokenPipeError:
        sys.stderr.write("the worker ended before it could be told of an error\n")


def _work(lines: Lines, order: Order) -> None:
    _say(lines, _estimate(order))
    _hear(lines, GoAhead)
    run = _open(order)
    _say(lines, _opened(run, order))
    stored = _stored(lines)
    if order.is_search:
        _replay(lines, run, stored)
    else:
        _search(lines, run, stored, order.upto)
    run.finetune(lambda: _heed(lines))
    _say(lines, Trained())
    report = run.publish(Path(order.output), order.forms) if order.publishes else None
    _say(lines, Published(report=report))


def _opened(run: PruningRun, order: Order) -> Opened:
    """Tell what there is, after a look at the model where trials are to come: one that is worse than guessing is refused."""
    look = None if order.is_search or order.upto is not None else run.look()
    notes = [*run.notes, *([] if look is None or look.note is None else [look.note])]
    return Opened(
        notes=tuple(cut(note) for note in notes),
        first_look=None if look is None else cut(look.sentence),
        shape=Shape(**vars(run.dimensions)),
    )


def _estimate(order: Order) -> Estimate:
    device, config = resolve_device(order.device), order.config
    sources = [source for source in (order.validation, order.test, order.train) if source is not None]
    data_bytes = sum(Path(source.path).stat().st_size for source in sources)
    sizes, batch_tokens, on_gpu = read_sizes(Path(order.checkpoint)), batch_tokens_of(device), device.startswith("cuda")
    return Estimate(
        least=_memory(least(sizes, data_bytes, config, batch_tokens, on_gpu=on_gpu)),
        at_ease=_memory(at_ease(sizes, data_bytes, config, batch_tokens, on_gpu=on_gpu)),
        total=Memory(host_bytes=total_bytes("cpu"), device_bytes=total_bytes(device) if on_gpu else 0),
        free=Memory(host_bytes=free_bytes("cpu"), device_bytes=free_bytes(device) if on_gpu else 0),
        parameters=sizes.parameters,
        data_bytes=data_bytes,
    )


def _memory(footprint: Footprint) -> Memory:
    return Memory(host_bytes=footprint.host_bytes, device_bytes=footprint.device_bytes)


def _open(order: Order) -> PruningRun:
    return PruningRun.open(
        order.checkpoint,
        _source(order.validation),
        test=None if order.test is None else _source(order.test),
        config=order.config,
        device=resolve_device(order.device),
        shards=order.shards if order.config.one_process is None else 1,
        train=None if order.train is None else _source(order.train),
        finetune=order.finetune,
    )


def _source(source: Source) -> DataSource:
    return DataSource(source.path, source.columns)


def _stored(lines: Lines) -> list[Trial]:
    trials: list[Trial] = []
    while isinstance(message := _hear(lines, Replay, Begin), Replay):
        trials += message.trials
    return trials


def _replay(lines: Lines, run: PruningRun, stored: list[Trial]) -> None:
    for _ in run.trials(stored):
        _heed(lines)
    best = next(place for place, trace in enumerate(passes_in(stored)) if tuple(trace) == run.trace)
    _say(lines, Searched(note=run.closing_note, promise=_promise(run, run.trace), best=best))


def _search(lines: Lines, run: PruningRun, stored: list[Trial], upto: int | None) -> None:
    clock, trace = PassClock(), list(stored)
    for trial in _new(run.trials(stored, clock, upto=upto), len(stored)):
        trace.append(trial)
        is_changed = trial.verdict in (Verdict.BASE, Verdict.ACCEPT) or len(trace) == len(stored) + 1
        _say(lines, Tried(trial=trial, promise=_promise(run, trace) if is_changed else None))
        if _is_to_wait(lines):
            clock.stop()
            _say(lines, Suspended())
            _hear(lines, GoOn)
            clock.go_on()
    _say(lines, Searched(note=run.closing_note, promise=_promise(run, trace), best=0))


def _promise(run: PruningRun, trace: Sequence[Trial]) -> Promise:
    return Promise(**asdict(run.estimate(trace)))


def _new(trials: Iterator[Trial], stored: int) -> Iterator[Trial]:
    return (trial for trial in trials if trial.seq >= stored)


def _is_to_wait(lines: Lines) -> bool:
    line = lines.poll()
    return line is not None and isinstance(FROM_WORKER.validate_json(line), Suspend)


def _heed(lines: Lines) -> None:
    """Notice that the worker has ended; what it has sent meanwhile is too late to matter."""
    lines.poll()


def _hear(lines: Lines, *kinds: type[Message]) -> Message:
    """The next message of one of these kinds; others were sent before the worker could know that they are too late."""
    while True:
        message = FROM_WORKER.validate_json(lines.receive())
        if not kinds or isinstance(message, kinds):
            return message


def _say(lines: Lines, message: Message) -> None:
    lines.send(message.line())
