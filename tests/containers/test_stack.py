"""The compose file from built images: one job of each kind, and each container killed in turn. ``make compose-test``.

``AXFORMER_TEST_BEFORE`` names a commit or tag of the project: the stack is upgraded from it too, in the middle of a pass."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from axformer.client import Client
from tests.containers.stack import END, MARKS, ROOT, SECONDS, Stack, run, running
from tests.faults.undisturbed import KNOBS, PRESET

pytestmark = MARKS
POOR = {"accept_poor_model": True}


@pytest.fixture(scope="module")
def client(stack: Stack) -> Iterator[Client]:
    with client_of(stack) as client:
        yield client


def client_of(stack: Stack) -> Client:
    """A client of a new team."""
    (key,) = re.findall("axk_[0-9a-f_]+", stack.exec("api", "python", "-m", "api.admin", "team", "create", "nlp"))
    return Client(stack.url, key)


def told(job: Any, client: Client) -> list[Any]:
    """What a job decided."""
    return [(trial.seq, trial.element, trial.verdict, trial.loss) for trial in client.trace(job.id)]


def test_each_kind_of_job_runs_to_its_end(client: Client, inputs: dict[str, Path], tmp_path: Path) -> None:
    compressed = client.submit("small", **inputs, goal="operations=1.5", config=POOR)
    analysed = client.submit_analysis("where", **inputs)
    compressed, analysed = client.wait(compressed.id, END), client.wait(analysed.id, END)
    assert compressed.has_succeeded, compressed.error
    assert analysed.has_succeeded, analysed.error
    exported = client.wait(client.export_point(compressed.id, seq=1).id, END)
    assert exported.has_succeeded, exported.error
    client.download(compressed.id, tmp_path / "result")
    assert (tmp_path / "result/hub/onnx/model_quantized.onnx").stat().st_size


def test_the_worker_has_every_restriction_that_a_container_grants(stack: Stack) -> None:
    log = stack.compose("logs", "worker")
    missing = [
        json.loads(line[line.index("{") :]) for line in log.splitlines() if "sandbox_restrictions_missing" in line
    ]
    assert all(set(one["missing"]) <= {"remains", "count"} for one in missing), missing


def test_whatever_is_killed_a_pass_decides_the_same(stack: Stack, client: Client, inputs: dict[str, Path]) -> None:
    first, second = (client.submit(name, **inputs, preset=PRESET, config=KNOBS) for name in ("calm", "disturbed"))
    calm = client.wait(first.id, END)
    assert calm.has_succeeded, calm.error
    for service in ("worker", "api", "valkey", "postgres"):
        before = len(told(second, client))
        stack.kill(service)
        assert len(told(second, client)) >= before, f"{service}: trials are lost"
    disturbed = client.wait(second.id, END)
    assert disturbed.has_succeeded, disturbed.error
    assert told(disturbed, client) == told(calm, client)


def test_a_second_worker_shares_the_queue(stack: Stack, client: Client, inputs: dict[str, Path]) -> None:
    stack.start("--no-recreate", "--scale", "worker=2")
    assert len(stack.compose("ps", "--quiet", "worker").split()) == 2
    jobs = [client.submit(f"shared {number}", **inputs, preset=PRESET, config=KNOBS) for number in range(2)]
    assert all(client.wait(job.id, END).has_succeeded for job in jobs)
    listed = stack.exec("api", "python", "-m", "api.admin", "worker", "list")
    assert len([line for line in listed.splitlines() if " cpu with " in line and ": seen" in line]) == 2, listed


def test_nothing_is_lost_when_the_whole_stack_ends_and_starts(stack: Stack, client: Client) -> None:
    before = [job.id for job in client.jobs()]
    stack.compose("down", "--timeout", "70")
    stack.start()
    assert [job.id for job in client.jobs()] == before
    checked = stack.exec("api", "python", "-m", "store.check")
    assert "missing: 0" in checked, checked


def test_a_dump_brings_back_what_was_lost(stack: Stack, client: Client) -> None:
    before = [job.id for job in client.jobs()]
    dump = stack.in_postgres("pg_dump --clean")
    client.delete(before[0])
    assert [job.id for job in client.jobs()] == before[1:]
    stack.in_postgres("psql --quiet", dump.encode())
    assert [job.id for job in client.jobs()] == before


@pytest.fixture
def before(tmp_path: Path) -> Iterator[Path]:
    """A checkout of the version before."""
    version = os.environ.get("AXFORMER_TEST_BEFORE") or pytest.skip(
        "AXFORMER_TEST_BEFORE names no version to upgrade from"
    )
    place = tmp_path / "before"
    run(["git", "worktree", "add", "--detach", str(place), version], os.environ, timeout=SECONDS)
    yield place
    run(["git", "worktree", "remove", "--force", str(place)], os.environ, timeout=SECONDS)


def test_an_upgrade_in_the_middle_of_a_pass_loses_nothing(before: Path, inputs: dict[str, Path]) -> None:
    with running(before) as stack, client_of(stack) as client:
        first = client.wait(client.submit("finished", **inputs, preset=PRESET, config=KNOBS).id, END)
        assert first.has_succeeded, first.error
        second = client.submit("upgraded", **inputs, preset=PRESET, config=KNOBS)
        stack.upgrade(ROOT)
        assert client.job(first.id).has_succeeded
        upgraded = client.wait(second.id, END)
        assert upgraded.has_succeeded, upgraded.error
        assert told(upgraded, client) == told(first, client)
        assert "missing: 0" in stack.exec("api", "python", "-m", "store.check")
