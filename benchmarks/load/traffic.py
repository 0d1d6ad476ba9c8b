"""Requests at a fixed rate that does not wait for answers: a server that falls behind is seen to fall behind."""

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.load.client import Client
from benchmarks.load.queue import LONG_TRACE, LoadedQueue

POLLERS = 50
READERS = 20
REST = {"POST job": 10, "trace page": 15, "queue": 10, "list jobs": 15}
"""Requests a second beside those of the pollers, who ask for a job each once a second: 100 together."""
READS = {"GET job": 150, "trace page": 45, "queue": 30, "list jobs": 75}
"""Requests a second of the load that the service must bear for long: reads alone, three times as many."""
_PAGE = 100
_ANSWER_SECONDS = 30.0
"""After that a request counts as failed."""
SHED, FAILED = "shed (503)", "failed"
_UNAVAILABLE, _FIRST_REFUSAL = 503, 400
_BODY = {
    "name": "posted under load",
    "checkpoint": {"uri": "hf://acme/bert-base-uncased-finetuned"},
    "validation": {"uri": "hf://datasets/acme/validation/data.jsonl"},
}

Ask = Callable[[], Awaitable[tuple[int, bytes]]]


@dataclass
class Measured:
    """Milliseconds from when each request was due to the end of its answer, by its kind, or as one that was shed or failed."""

    milliseconds: dict[str, list[float]] = field(default_factory=dict)
    events: int = 0
    """Events that the readers of streams got."""


async def put_load(
    url: str, queue: LoadedQueue, seconds: float, seed: int, kinds: Mapping[str, float] | None = None
) -> Measured:
    """Put the load on the server for so long; ``kinds`` are requests a second."""
    chance, measured, last = random.Random(seed), Measured(), asyncio.Event()  # noqa: S311
    kinds = kinds or {"GET job": POLLERS, **REST}
    pollers = [Client(url) for _ in range(POLLERS)]
    teams = {key: Client(url) for key in (queue.long[1], *queue.keys)}
    asks = _asks(teams, pollers, queue, chance)
    readers = [
        asyncio.ensure_future(teams[key].events(f"/v1/jobs/{job}/events", key, last))
        for job, key in [queue.long, *chance.sample(queue.queued, READERS - 1)]
    ]
    begun = due = time.monotonic()
    try:
        async with asyncio.TaskGroup() as answers:
            while due < begun + seconds:
                due += chance.expovariate(sum(kinds.values()))
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                kind = chance.choices(list(kinds), list(kinds.values()))[0]
                answers.create_task(_measure(measured, kind, asks[kind], due))
    finally:
        last.set()
        measured.events = sum(await asyncio.gather(*readers))
        for one in (*teams.values(), *pollers):
            one.close()
    return measured


def _asks(
    teams: Mapping[str, Client], pollers: Sequence[Client], queue: LoadedQueue, chance: random.Random
) -> dict[str, Ask]:
    """What is asked of each kind. Every poller and every team, by its key, has connections of its own."""
    polled = [queue.long, *chance.sample(queue.queued, POLLERS - 1)]
    turns = itertools.cycle(zip(pollers, polled, strict=True))

    def get_job() -> Awaitable[tuple[int, bytes]]:
        poller, (job, key) = next(turns)
        return poller.request("GET", f"/v1/jobs/{job}", key)

    def get_trace() -> Awaitable[tuple[int, bytes]]:
        job, key = queue.long
        after = chance.randrange(LONG_TRACE - _PAGE)
        return teams[key].request("GET", f"/v1/jobs/{job}/trace?after={after}&limit={_PAGE}", key)

    def by_some_team(method: str, path: str, body: Any = None) -> Awaitable[tuple[int, bytes]]:
        key = chance.choice(queue.keys)
        return teams[key].request(method, path, key, body)

    return {
        "GET job": get_job,
        "POST job": lambda: by_some_team("POST", "/v1/jobs", _BODY),
        "trace page": get_trace,
        "queue": lambda: by_some_team("GET", "/v1/queue"),
        "list jobs": lambda: by_some_team("GET", "/v1/jobs"),
    }


async def _measure(measured: Measured, kind: str, ask: Ask, due: float) -> None:
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            status, _ = await ask()
    except (TimeoutError, OSError, asyncio.IncompleteReadError):
        status = _FIRST_REFUSAL
    if status >= _FIRST_REFUSAL:
        kind = SHED if status == _UNAVAILABLE else FAILED
    measured.milliseconds.setdefault(kind, []).append((time.monotonic() - due) * 1000)
