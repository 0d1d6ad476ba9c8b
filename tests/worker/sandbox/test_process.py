"""Confined processes are forked from one parent, have nothing of each other, and are ended with all that they have started."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from pydantic import SecretStr

from store.settings import Settings
from store.system.processes import descendants
from tests.waiting import wait_until
from tests.worker.sandbox import obedient
from worker.sandbox.launch import FILES, NETWORK
from worker.sandbox.launch import ROOT as OWN_ROOT
from worker.sandbox.parent import NAME
from worker.sandbox.process import INPUTS, MADE, ConfinedProcess
from worker.sandbox.restrictions import ROOT, environment
from worker.sandbox.warm_parent import ADDRESS, NOWHERE, Keeper, WarmParent, fork, fork_from_kept

SECONDS = 120.0
CANARY = "canary-secret"
HIDDEN = ("FileNotFoundError", "PermissionError")
"""What comes of a file of others, with a root of its own and without."""
MARKED = (
    "import re\n"
    "answer = 0\n"
    "for line in open('/proc/self/maps').read().splitlines():\n"
    "    place, rights, *_ = line.split()\n"
    "    if rights.startswith('rw') and '[v' not in line:\n"
    "        start, stop = (int(one, 16) for one in place.split('-'))\n"
    "        with open('/proc/self/mem', 'rb') as memory:\n"
    "            memory.seek(start)\n"
    "            answer += len(re.findall(rb'mark-[0-9a-f]{32}', memory.read(stop - start)))\n"
)
"""How often a marker stands in the memory of the process; the program itself holds none."""


class Job:
    """A process behind the restrictions, and the directory of its job."""

    def __init__(self, parent: WarmParent, root: Path) -> None:
        self.root = root
        for name in (INPUTS, MADE):
            (root / name).mkdir(mode=0o700, parents=True)
        settings = Settings(database_url=SecretStr("postgresql://nowhere/none"), var_dir=root)
        self.process: ConfinedProcess = fork(parent.address, root, settings)
        self.refused: dict[str, str] = {}
        self._ended: str | None = None

    def end(self) -> str:
        """End it, once, and say how it ended."""
        if self._ended is None:
            self._ended = self.process.end()
        return self._ended

    def stand(self) -> "Job":
        """Wait until the restrictions are in force; before, it starts nothing."""
        self.refused = self.hear()["refused"]
        return self

    def hear(self) -> Any:
        line = self.process.lines.poll(SECONDS)
        assert line is not None
        return json.loads(line)

    def does(self, code: str) -> Any:
        """What it answers to some Python."""
        self.process.lines.send(json.dumps(code).encode())
        return self.hear()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid


@pytest.fixture(scope="module")
def parent() -> Iterator[WarmParent]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DATABASE_URL", "BROKER_URL", "HF_TOKEN"):
            patch.setenv(name, CANARY)
        made = WarmParent(obedient.__name__)
        made.keep()
        yield made
        made.close()


@pytest.fixture
def start(parent: WarmParent, tmp_path: Path) -> Iterator[Callable[[str], Job]]:
    jobs: list[Job] = []

    def begin(name: str) -> Job:
        jobs.append(Job(parent, tmp_path / name))
        return jobs[-1].stand()

    yield begin
    for job in jobs:
        job.end()


def test_a_job_finds_nothing_of_the_one_before_it(start: Callable[[str], Job]) -> None:
    first = start("first")
    assert first.does(MARKED) == 0
    first.does(
        "import builtins, os, sys\n"
        "word = 'mark-' + os.urandom(16).hex()\n"
        "builtins.marker = sys.marker = word\n"
        "os.environ['MARKER'] = word\n"
        "open('left', 'w').write(word)\n"
        "os.umask(0)\n"
    )
    assert first.does(MARKED) > 0
    first.end()
    second = start("second")
    assert second.does("import builtins, sys\nanswer = hasattr(builtins, 'marker') or hasattr(sys, 'marker')") is False
    assert second.does("import os\nanswer = [os.environ.get('MARKER'), os.listdir('.'), os.umask(0)]") == [
        None,
        [],
        0o22,
    ]
    assert second.does(MARKED) == 0
    assert second.pid != first.pid
    if FILES not in second.refused:
        left = first.root / MADE / "left"
        assert second.does(f"answer = open({str(left)!r}).read()") in HIDDEN


@pytest.mark.slow
def test_no_library_notes_a_place_of_the_parent_for_its_jobs(tmp_path: Path) -> None:
    """The real program is imported, as a worker's parent does, and a job's process then moves to its own directory."""
    code = (
        "import json, os, sys, worker.sandbox.child, worker.sandbox.parent as parent\n"
        "parent.move_in(sys.argv[1])\n"
        "print(json.dumps(dict(os.environ)))"
    )
    given = environment(os.environ, NOWHERE)
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=given, cwd=ROOT, capture_output=True, check=True
    )
    has = json.loads(ran.stdout.splitlines()[-1])
    noted = {name: value for name, value in has.items() if value != given.get(name) and name != "LC_CTYPE"}
    assert noted == {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}


def test_with_a_root_of_its_own_a_directory_that_is_renamed_keeps_its_name_inside(
    start: Callable[[str], Job], tmp_path: Path
) -> None:
    job = start("first")
    if OWN_ROOT in job.refused:
        pytest.skip(f"this machine does not grant it: {job.refused[OWN_ROOT]}")
    job.root.rename(tmp_path / "given")
    (tmp_path / "given" / INPUTS / "rows").write_text("fetched")
    inside = f"answer = open({str(job.root / INPUTS / 'rows')!r}).read(), os.getcwd(), os.path.realpath('x')"
    made = job.root / MADE
    assert job.does(f"import os\n{inside}\nopen({str(made / 'x')!r}, 'w').write('made')") == [
        *("fetched", str(made), str(made / "x"))
    ]
    assert (tmp_path / "given" / MADE / "x").read_text() == "made"


def test_jobs_at_the_same_time_find_nothing_of_each_other(start: Callable[[str], Job]) -> None:
    first, second = start("one"), start("other")
    first.does("import os\nword = 'mark-' + os.urandom(16).hex()")
    assert (first.does(MARKED) > 0, second.does(MARKED)) == (True, 0)
    if FILES not in second.refused:
        assert second.does(f"import os\nanswer = os.listdir({str(first.root / MADE)!r})") in HIDDEN
    second.end()
    assert first.does("answer = 'still here'") == "still here"


@pytest.mark.skipif(sys.platform != "linux", reason="the restrictions are Linux's")
def test_every_job_has_the_restrictions(start: Callable[[str], Job]) -> None:
    for name in ("one", "two"):
        job = start(name)
        status = dict(one.split(":\t") for one in job.does("answer = open('/proc/self/status').read()").splitlines())
        assert (status["NoNewPrivs"], int(status["CapEff"], 16), int(status["CapBnd"], 16)) == ("1", 0, 0)
        assert status["Threads"] == "1"
        if NETWORK not in job.refused:
            assert status["Seccomp"] == "2"
            code = "import socket\nsocket.create_connection(('127.0.0.1', 1), 5)"
            assert job.does(code) == "OSError"  # there is no such family of sockets
            assert job.does("import socket\nsocket.socket(socket.AF_UNIX).bind('here.sock')") == "PermissionError"
        if FILES not in job.refused:
            assert job.does("answer = open('/etc/shadow').read()") in HIDDEN
            assert job.does(f"answer = open({str(ROOT / 'pyproject.toml')!r}).read()") in HIDDEN
        limits = "import resource\nanswer = resource.getrlimit(resource.RLIMIT_CORE)"
        assert job.does(limits) == [0, 0]


def test_a_job_has_its_pipes_its_log_and_no_secret(start: Callable[[str], Job], parent: WarmParent) -> None:
    assert parent.pid is not None
    start("before")  # which the parent holds a socket of
    job = start("job")
    assert len(job.does("import os\nanswer = [n for n in range(3, 1024) if os.path.exists(f'/proc/self/fd/{n}')]")) == 2
    seen = job.does("import os\nanswer = dict(os.environ)")
    assert CANARY not in json.dumps(seen)
    assert seen["HOME"] == seen["TMPDIR"] == job.does("import os\nanswer = os.getcwd()") == str(job.root / MADE)
    assert CANARY.encode() not in Path(f"/proc/{parent.pid}/environ").read_bytes()
    assert psutil.Process(job.pid).name() == NAME


def test_a_process_that_has_died_keeps_its_id_until_it_is_ended(
    start: Callable[[str], Job], parent: WarmParent
) -> None:
    """Looking whether it lives must not give its id back: what is killed by it afterwards could be anybody's."""
    job = start("job")
    os.kill(job.pid, signal.SIGKILL)
    wait_until(lambda: not job.process.is_alive())
    assert psutil.Process(job.pid).ppid() == parent.pid
    assert "exit code -9" in job.end()
    assert job.pid not in [one.pid for one in psutil.Process(parent.pid).children()]


def test_what_a_process_says_as_it_ends_is_for_the_operator(start: Callable[[str], Job]) -> None:
    job = start("job")
    job.process.lines.send(
        json.dumps("import os, sys\nprint('oh no', file=sys.stderr, flush=True)\nos._exit(3)").encode()
    )
    wait_until(lambda: not job.process.is_alive())
    ended = job.end()
    assert "exit code 3" in ended
    assert "oh no" in ended


def test_a_process_that_lives_is_ended_with_what_it_has_started(start: Callable[[str], Job]) -> None:
    job = start("job")
    assert job.does("import subprocess\none = subprocess.Popen(['sleep', '86399'])") is None
    family = [psutil.Process(job.pid), *descendants(job.pid)]
    wait_until(lambda: any("86399" in one.cmdline() for one in family))  # empty for a moment within its start
    assert "it had not ended" in job.end()
    _, alive = psutil.wait_procs(family, timeout=SECONDS)
    assert alive == []


def test_a_parent_that_has_died_takes_its_jobs_along_and_is_started_anew(tmp_path: Path) -> None:
    parent = WarmParent(obedient.__name__)
    parent.keep()
    try:
        job = Job(parent, tmp_path / "one").stand()
        first, family = parent.pid, [psutil.Process(job.pid), *descendants(job.pid)]
        assert first is not None
        os.kill(first, signal.SIGKILL)
        _, alive = psutil.wait_procs(family, timeout=SECONDS)
        assert alive == []
        wait_until(lambda: not job.process.is_alive())
        assert "exit code None" in job.end()
        again = Job(parent, tmp_path / "two")  # asked before there is another parent, which answers
        parent.keep()
        again.stand()
        assert again.does("answer = 1") == 1
        assert parent.pid != first
        assert "it had not ended" in again.end()
    finally:
        parent.close()


def test_a_process_that_nobody_wants_any_more_is_not_kept(tmp_path: Path) -> None:
    parent = WarmParent(obedient.__name__)
    parent.keep()
    try:
        unwanted = Job(parent, tmp_path / "one")
        unwanted.end()
        wanted = Job(parent, tmp_path / "two").stand()
        below = psutil.Process(parent.pid)
        wait_until(lambda: [one.pid for one in below.children()] == [wanted.pid])
        wanted.end()
        assert below.children() == []
    finally:
        parent.close()


def test_all_end_with_their_worker(tmp_path: Path) -> None:
    worker = (
        "import sys, time\nfrom pathlib import Path\n"
        "from tests.worker.sandbox.test_process import Job\nfrom worker.sandbox.warm_parent import WarmParent\n"
        "parent = WarmParent('tests.worker.sandbox.obedient')\nparent.keep()\njob = Job(parent, Path(sys.argv[1]) / 'job')\n"
        "job.stand()\n"
        "print(parent.pid, job.pid, flush=True)\ntime.sleep(86400)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", worker, str(tmp_path)], stdout=subprocess.PIPE, env=environment
    ) as one:
        try:
            assert one.stdout is not None
            family = [psutil.Process(int(pid)) for pid in one.stdout.readline().split()]
            family += family[-1].children(recursive=True)
        finally:
            one.kill()
    _, alive = psutil.wait_procs(family, timeout=SECONDS)
    assert alive == []


@pytest.mark.slow
def test_the_parent_of_jobs_has_imported_all_and_has_one_thread(tmp_path: Path) -> None:
    parent = WarmParent()
    parent.keep()
    try:
        first = Job(parent, tmp_path / "one").stand()
        ready = first.hear()
        assert (ready["auto"], ready["no_gpu"] is None) == (first_device(), first_device() == "cuda")
        assert psutil.Process(parent.pid).num_threads() == 1
        loaded = {Path(one.path).name.partition(".")[0] for one in psutil.Process(parent.pid).memory_maps()}
        assert "libtorch_cpu" in loaded
        assert [one.fd for one in psutil.Process(parent.pid).open_files()] == []
        first.end()
    finally:
        parent.close()


def test_processes_of_a_worker_fork_from_the_parent_that_its_main_process_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(database_url=SecretStr("postgresql://nowhere/none"), var_dir=tmp_path)
    monkeypatch.setenv(ADDRESS, "")
    keeper = Keeper(obedient.__name__)
    keeper.start()
    try:
        for name in ("one", "two"):
            for part in (INPUTS, MADE):
                (tmp_path / name / part).mkdir(mode=0o700, parents=True)
            process = fork_from_kept(tmp_path / name, settings)
            wait_until(lambda process=process: process.pid is not None)
            parent = psutil.Process(psutil.Process(process.pid).ppid())
            assert parent in psutil.Process().children()
            process.end()
            parent.kill()  # the keeper starts another
            wait_until(lambda parent=parent: not parent.is_running())
    finally:
        keeper.close()
    assert not Path(os.environ[ADDRESS]).exists()


def first_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
