"""The page on the client is a program that runs, and prints what it says."""

import re
import threading
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from axformer.client import Client
from axformer.plan.trial import Phase, Verdict
from tests.api.conftest import Crew, Stage, trial
from tests.client.conftest import beside

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
DEADLINE = 120.0
TRIALS = [
    trial(0, loss=0.3488),
    trial(1, element="layer.5.ffn", loss=0.3964),
    trial(2, element="layer.1.attention", loss=0.3561, verdict=Verdict.REFINE),
    trial(3, element="layer.1.attention.head.0", phase=Phase.HEAD, loss=0.3457, verdict=Verdict.ACCEPT),
]
PROGRESS = {"done": 4, "known": 4, "seconds": 36.0, "base_loss": 0.3488, "min_loss": 0.3457}
FILES = {
    "model/config.json": b"{}",
    "model/model.safetensors": b"weights",
    "plan.json": b"{}",
    "artifact.tar.gz": b"all",
}
FIGURES = {
    "validation": {"loss": 0.3488},
    "test": None,
    "parameters": 22_713_986,
    "bytes": 90_900_000,
    "latency_ms": 18.9,
}
PRUNED = FIGURES | {"validation": {"loss": 0.3457}, "parameters": 22_615_490}


def play_worker(stage: Stage, client: Client, over: threading.Event) -> None:
    """Take the first job that is posted to its end."""
    until = time.monotonic() + DEADLINE
    while not (found := list(client.jobs())):
        assert time.monotonic() < until
        if over.wait(0.05):
            return
    stage.begin(found[0].id, TRIALS, PROGRESS)
    stage.succeed(found[0].id, FILES, base=FIGURES, pruned=PRUNED)


def test_the_page_runs_and_prints_what_it_says(
    live: str, crew: Crew, api: Client, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    (place / "my-checkpoint").mkdir(parents=True)
    (place / "my-checkpoint" / "config.json").write_text("{}")
    (place / "my-checkpoint" / "model.safetensors").write_bytes(b"weights")
    for name in ("dev.jsonl", "test.jsonl"):
        (place / name).write_text('{"text": "good", "label": 1}\n')
    monkeypatch.chdir(place)
    monkeypatch.setenv("AXFORMER_URL", live)
    monkeypatch.setenv("AXFORMER_API_KEY", crew.key)
    program = PAGE.read_text(encoding="utf-8").partition("## Without the service")[0]
    blocks = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", program, flags=re.DOTALL)
    names: dict[str, Any] = {}
    over = threading.Event()
    with beside(lambda: play_worker(stage, api, over)):
        try:
            for code, expected in blocks:
                printed = StringIO()
                with redirect_stdout(printed):
                    exec(code, names)
                assert printed.getvalue() == expected
        finally:
            over.set()
    assert len(blocks) == 7
    assert (place / "trace.csv").read_text().startswith("seq,phase,")
