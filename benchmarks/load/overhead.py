"""What the service adds to a pass: ``python -m benchmarks.load.overhead [--rounds 7]``.

The same pass runs twice a round, once by the library alone in a process of its own and once by the worker's runner, in a
confined process with lease, heartbeats, events and stored trials; which goes first changes with the round. Compared are the
seconds of the trials, from the base trial to the last, which are the pass; fetching and packaging are what a caller of the
library does too.

On a machine with other guests these seconds differ from round to round by more than is looked for. What the service computes
beside the pass does not: the computing of the worker's own process and of PostgreSQL while there are trials is given as a share
of the pass. With a core to spare the pass does not pay it.
"""

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import torch
from pydantic import SecretStr
from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

from axformer.run import PruningRun
from axformer.wire.run import Run, read_run
from store.embedded.postgres import start_postgres
from store.embedded.server import running
from store.migrate import migrate
from store.repositories.events import events_after
from store.repositories.jobs import NewJob, create_job
from store.repositories.teams import create_team
from store.repositories.trials import all_trials
from store.session import session_scope
from store.settings import Settings
from store.states import JobState
from store.tables.jobs import Job
from worker.base.context import WorkerContext, claim_job, open_context
from worker.job.runner import run_job
from worker.sandbox.sandboxes import Sandboxes

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_WORDS = [f"word{number}" for number in range(500)]
_ROWS = 200
_WORDS_A_ROW = (5, 25)
_NEVER = threading.Event()
_CHUNK = 1000
_SAMPLE_SECONDS = 2.0


@dataclass(frozen=True)
class Served:
    """A pass in the service."""

    seconds: float
    begun: datetime
    ended: datetime
    """Between the two there were trials."""


@dataclass(frozen=True)
class Round:
    """Seconds of the same pass by the library and in the service, and the share of a core that was computed beside it."""

    alone: float
    served: float
    beside: float

    @property
    def more(self) -> float:
        """What the service takes more than the library, as a share."""
        return self.served / self.alone - 1

    def __str__(self) -> str:
        return f"library {self.alone:.2f} s, service {self.served:.2f} s ({self.more:+.1%}), beside {self.beside:.1%}"


def write_inputs(directory: Path) -> None:
    """A model of the size of MiniLM with random weights, and rows of random words: what counts is how long they take."""
    torch.manual_seed(0)
    shape = BertConfig(
        vocab_size=len(_SPECIAL) + len(_WORDS),
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
        max_position_embeddings=128,
    )
    BertForSequenceClassification(shape).save_pretrained(directory / "checkpoint")
    vocabulary = {token: number for number, token in enumerate([*_SPECIAL, *_WORDS])}
    BertTokenizer(vocab=vocabulary, model_max_length=128).save_pretrained(directory / "checkpoint")
    chance = random.Random(0)  # noqa: S311 - data, not secrets
    rows = (
        f'{{"text": "{" ".join(chance.choices(_WORDS, k=chance.randint(*_WORDS_A_ROW)))}", "label": {number % 2}}}\n'
        for number in range(_ROWS)
    )
    (directory / "validation.jsonl").write_text("".join(rows))


def _places(directory: Path) -> dict[str, str]:
    return {"checkpoint": str(directory / "checkpoint"), "validation": str(directory / "validation.jsonl")}


def _run_in(directory: Path) -> Run:
    return read_run({field: f"file://{place}" for field, place in _places(directory).items()} | {"preset": "paper"})


def library_pass(directory: Path) -> float:
    """Seconds of the pass by the library alone, in a fresh process: in one that has made a pass before, memory is at hand."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as fresh:
        return fresh.submit(_pass_here, directory).result()


def _pass_here(directory: Path) -> float:
    run = PruningRun.open(_run_in(directory), paths=_places(directory))
    return list(run.trials())[-1].seconds


def service_pass(context: WorkerContext, team_id: str, directory: Path) -> Served:
    """The pass in the worker's runner."""
    new = NewJob(team_id=team_id, name="overhead", spec=_run_in(directory).settled().stored())
    with session_scope(context.sessions) as session:
        create_job(session, new)
    job = claim_job(context)
    assert job is not None
    run_job(context, job, _NEVER)
    with session_scope(context.sessions) as session:
        ended: Any = session.get(Job, job.id)
        assert ended.state == JobState.SUCCEEDED, ended.error
        at = {event.type: event.created_at for event in events_after(session, job.id, limit=_CHUNK).items}
        seconds = list(all_trials(session, job.id, chunk=_CHUNK))[-1].seconds
        return Served(seconds, at[f"job.{JobState.RUNNING}"], at[f"job.{JobState.PACKAGING}"])


def computed(server: psutil.Process) -> float:
    """Seconds that this process and those of a server have computed so far, without any confined process."""
    times = [process.cpu_times() for process in (server, *server.children(recursive=True))]
    seconds: float = sum(one.user + one.system + one.children_user + one.children_system for one in times)
    return time.process_time() + seconds


@contextmanager
def sampled(server: psutil.Process) -> Iterator[list[tuple[datetime, float]]]:
    """What is computed, asked now and then: the list grows until the end."""
    samples: list[tuple[datetime, float]] = []
    over = threading.Event()

    def sample() -> None:
        while not over.wait(_SAMPLE_SECONDS):
            samples.append((datetime.now(UTC), computed(server)))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def run_round(library: Callable[[], float], service: Callable[[], Served], server: psutil.Process, turn: int) -> Round:
    """Both passes, in an order that changes with the turn."""
    alone = library() if turn % 2 else None
    with sampled(server) as samples:
        served = service()
    (first, before), *_, (last, after) = [one for one in samples if served.begun <= one[0] <= served.ended]
    share = (after - before) / (last - first).total_seconds()
    return Round(library() if alone is None else alone, served.seconds, share)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load.overhead")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # both processes read it
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory(prefix="axformer-overhead-") as made:
        directory = Path(made)
        write_inputs(directory)
        with running(start_postgres(directory / "postgres", directory / "postgres.log")) as postgres:
            settings = Settings(
                database_url=SecretStr(postgres.url), var_dir=directory / "var", file_roots=(directory,), device="cpu"
            )
            migrate(settings)
            server = psutil.Process(postgres.child.process.pid)
            with Sandboxes(settings) as sandboxes, open_context(settings, sandboxes) as context:
                with session_scope(context.sessions) as session:
                    team = create_team(session, "overhead").id
                library, service = partial(library_pass, directory), partial(service_pass, context, team, directory)
                for turn in range(given.rounds):
                    rounds.append(run_round(library, service, server, turn))
                    print(rounds[-1], flush=True)
    print(
        f"overhead {_spread([one.more for one in rounds], '+')}, computed beside {_spread([one.beside for one in rounds])}"
    )
    return 0


def _spread(shares: list[float], sign: str = "") -> str:
    return f"{median(shares):{sign}.1%} [{min(shares):{sign}.1%}, {max(shares):{sign}.1%}]"


if __name__ == "__main__":
    sys.exit(main())
