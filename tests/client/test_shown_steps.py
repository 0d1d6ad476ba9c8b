"""How ``axformer watch`` shows what a job does between two trials."""

import io
from typing import Any

import pytest
from rich.console import Console

from api.openapi import EXAMPLES
from axformer.cli.watch import _shown
from axformer.client import Job, Update


def update(done: int, state: str = "running") -> Update:
    step: dict[str, Any] = {
        "name": "level_table",
        "done": done,
        "known": 3,
        "detail": f"block {done}",
        "seconds_left": 2.0,
    }
    progress = EXAMPLES["job"]["progress"] | {"step": None if state == "succeeded" else step}
    return Update(Job.model_validate(EXAMPLES["job"] | {"state": state, "progress": progress}), [])


def shown() -> str:
    console = Console(file=io.StringIO(), force_terminal=False, width=150, highlight=False)
    _shown(console, iter([update(1), update(2), update(2), update(3), update(3, "succeeded")]))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_step_is_one_line_in_a_pipe_however_often_it_is_told() -> None:
    told = [line for line in shown().splitlines() if "measuring" in line]
    assert told == ["measuring what each size of each block costs (block 1): 1 of 3, about 2 s left"]


def test_a_long_step_is_told_now_and_then_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axformer.cli.display.QUIET_SECONDS", -1.0)
    told = [line for line in shown().splitlines() if "measuring" in line]
    assert [line.partition(": ")[2] for line in told] == [f"{done} of 3, about 2 s left" for done in (1, 2, 2, 3)]
