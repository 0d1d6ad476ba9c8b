"""What the service adds to a pass: ``python -m benchmarks.load.overhead [--rounds 7]``.

The same pass runs twice a round, once by the library alone in this process and once by the worker's runner, in a confined
process with lease, heartbeats, events and stored trials; which goes first changes with the round. Compared are the seconds of
the trials, from the base trial to the last, which are the pass; fetching and packaging are what a caller of the library does
too.
"""

import argparse
import os
import random
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from pydantic import SecretStr
from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

from axformer.config import make_config
from axformer.data.dataset import DataSource
from axformer.run import PruningRun
from store.embedded.postgres import start_postgres
from store.embedded.server import running
from store.migrate import migrate
from store.repositories.jobs import NewJob, create_job
from store.repositories.teams import create_team
from store.repositories.trials import all_trials
from store.session import session_scope
from store.settings import Settings
from store.states import JobState
from store.tables.jobs import Job
from worker.context import WorkerContext, claim_job, open_context
from worker.runner import run_job
from worker.sandbox.sandboxes import Sandboxes

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_WORDS = [f"word{number}" for number in range(500)]
_ROWS = 200
_WORDS_A_ROW = (5, 25)
_NEVER = threading.Event()
_CHUNK = 1000


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


def library_pass(directory: Path) -> float:
    """Seconds of the pass by the library alone."""
    data = DataSource(str(directory / "validation.jsonl"))
    run = PruningRun.open(directory / "checkpoint", data, config=make_config("paper", {}))
    trials = list(run.trials())
    return trials[-1].seconds


def service_pass(context: WorkerContext, team_id: str, directory: Path) -> float:
    """Seconds of the pass in the worker's runner."""
    new = NewJob(
        team_id=team_id,
        name="overhead",
        checkpoint={"uri": f"file://{directory / 'checkpoint'}"},
        validation={"uri": f"file://{directory / 'validation.jsonl'}"},
        preset="paper",
        config=make_config("paper", {}).model_dump(mode="json"),
    )
    with session_scope(context.sessions) as session:
        create_job(session, new)
    job = claim_job(context)
    assert job is not None
    run_job(context, job, _NEVER)
    with session_scope(context.sessions) as session:
        ended: Any = session.get(Job, job.id)
        assert ended.state == JobState.SUCCEEDED, ended.error
        return list(all_trials(session, job.id, chunk=_CHUNK))[-1].seconds


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load.overhead")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(int(os.environ.setdefault("OMP_NUM_THREADS", "1")))  # the confined process reads it
    more: list[float] = []
    with tempfile.TemporaryDirectory(prefix="axformer-overhead-") as made:
        directory = Path(made)
        write_inputs(directory)
        with running(start_postgres(directory / "postgres", directory / "postgres.log")) as postgres:
            settings = Settings(
                database_url=SecretStr(postgres.url), var_dir=directory / "var", file_roots=(directory,), device="cpu"
            )
            migrate(settings)
            with Sandboxes(settings) as sandboxes, open_context(settings, sandboxes) as context:
                with session_scope(context.sessions) as session:
                    team = create_team(session, "overhead").id
                for number in range(given.rounds):
                    passes = [partial(library_pass, directory), partial(service_pass, context, team, directory)]
                    first, second = passes[number % 2](), passes[1 - number % 2]()
                    alone, served = (second, first) if number % 2 else (first, second)
                    more.append(served / alone - 1)
                    print(f"library {alone:.2f} s, service {served:.2f} s, {more[-1]:+.1%}", flush=True)
    print(f"overhead {median(more):+.1%} [{min(more):+.1%}, {max(more):+.1%}], the median of {given.rounds} rounds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
