"""A worker learns which restrictions it does not get, and ends where its operator requires them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from store.settings import Settings
from worker.sandbox import system_calls
from worker.sandbox.launch import FILES, PROCESSES, REMAINS
from worker.sandbox.launch import ROOT as OWN_ROOT
from worker.sandbox.privileges import counted_in
from worker.sandbox.probe import refused_restrictions

POOR = Path(__file__).with_name("poor_machine.py")
ROOT = Path(__file__).parents[3]
SECONDS = 300.0


def asked_on_a_poor_machine(sandbox: str, *calls: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, str(POOR), sandbox, *calls],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
    )
    if done.returncode != 0 and done.stderr.splitlines()[-1].startswith(("OSError", "PermissionError")):
        pytest.skip(f"this machine grants no filter of system calls: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.fixture(autouse=True)
def _filters() -> None:
    if sys.platform != "linux" or os.uname().machine not in system_calls.PROCESSORS:
        pytest.skip("the restrictions are those of Linux, on processors whose system calls are known")


def test_restrictions_that_are_not_granted_are_named_with_their_reasons() -> None:
    refused = asked_on_a_poor_machine("available", "landlock", "unshare")
    assert set(refused) == {FILES, OWN_ROOT, PROCESSES, REMAINS}
    assert refused[FILES] == "no Landlock: Function not implemented"
    assert refused[OWN_ROOT] == refused[PROCESSES] == refused[REMAINS] == "no namespaces: Operation not permitted"


def test_without_mounts_a_process_starts_and_sees_the_root_of_the_machine() -> None:
    refused, whole = asked_on_a_poor_machine("available", "mount"), asked_on_a_poor_machine("available")
    if OWN_ROOT in whole:
        pytest.skip(f"this machine grants no root: {whole[OWN_ROOT]}")
    assert refused == whole | {OWN_ROOT: "no root of its own: Operation not permitted"}


def test_a_worker_that_was_started_where_jobs_see_nothing_has_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = refused_restrictions(Settings(database_url=SecretStr("postgresql://nowhere/none")))
    assert (OWN_ROOT in refused) == (REMAINS in refused), "namespaces are all that both need"


def test_a_worker_ends_where_they_are_required() -> None:
    found = asked_on_a_poor_machine("required", "landlock", "unshare")
    assert set(found) == {"ends"}
    assert found["ends"].startswith("AXFORMER_SANDBOX=required, and this machine does not grant ")
    assert f"{FILES}: no Landlock" in found["ends"]
    assert REMAINS not in found["ends"]


@pytest.mark.parametrize(
    ("own", "handing_down", "expected"),
    [
        ("9:name=systemd:/\n8:pids:/jobs\n0::/\n", [], "/pids/jobs"),
        ("0::/system.slice/worker.service\n", ["/system.slice"], "/system.slice"),
        (
            "0::/system.slice/worker.service\n",
            ["/system.slice", "/system.slice/worker.service"],
            "/system.slice/worker.service",
        ),
        ("0::/worker\n", ["/"], "/"),
        ("0::/\n", [], "/"),
    ],
)
def test_a_job_is_counted_where_its_group_is_handed_a_counter(
    tmp_path: Path, own: str, handing_down: list[str], expected: str
) -> None:
    for place in ("/", "/system.slice", "/system.slice/worker.service", "/worker"):
        directory = tmp_path / place.lstrip("/")
        directory.mkdir(exist_ok=True)
        (directory / "cgroup.subtree_control").write_text("cpu memory pids\n" if place in handing_down else "cpu\n")
    assert counted_in(own, str(tmp_path)) == f"{tmp_path}{expected}"
