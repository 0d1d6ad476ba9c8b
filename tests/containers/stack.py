"""The whole compose file as its users start it: its images, networks, volumes, health checks and limits.

With Docker where its daemon answers and its compose plugin is there; else with podman and the plugin that ``bases.sh`` fetches.
"""

import os
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from store.system.processes import free_port

ROOT = Path(__file__).parent.parent.parent
BUILD_SECONDS, START_SECONDS, SECONDS = 3600, 600, 180
PLUGIN = ROOT / "var/containers/docker-compose"
IMAGES = {"axformer-api": ("Dockerfile.api", ()), "axformer-worker:cpu": ("Dockerfile.worker", ("DEVICE=cpu",))}
HEALTH_EVERY = 10.0
END = 1200.0
"""Seconds within which a job ends."""
MARKS = [
    pytest.mark.slow,
    pytest.mark.timeout(BUILD_SECONDS + 3600),
    pytest.mark.skipif("AXFORMER_TEST_CONTAINERS" not in os.environ, reason="make compose-test runs it"),
]
"""Of every test of containers."""


@dataclass
class Stack:
    """A project of its own, beside whatever else runs on this machine."""

    program: Sequence[str]
    """The command of compose."""
    host: Mapping[str, str]
    """Environment variables that say where the engine is."""
    project: str = field(default_factory=lambda: f"axformer-{secrets.token_hex(3)}")
    root: Path = ROOT
    """The checkout whose compose file is taken, and whose images are built."""
    port: int = field(default_factory=free_port)
    password: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def url(self) -> str:
        """Where the API answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """What .env says."""
        own = {
            "POSTGRES_PASSWORD": self.password,
            "VALKEY_PASSWORD": self.password,
            "AXFORMER_SECRET_KEY": 2 * self.password,
            "AXFORMER_PORT": str(self.port),
            "COMPOSE_PROFILES": "cpu",
        }
        return {**os.environ, **own, **self.host}

    def compose(self, *arguments: str, timeout: float = SECONDS, stdin: bytes | None = None) -> str:
        """Run a command of compose, and return what it prints."""
        command = [*self.program, "--project-name", self.project, *arguments]
        return run(command, self.environment, self.root, timeout=timeout, stdin=stdin)

    def build(self) -> None:
        """Build the images of the checkout."""
        if self.program[0] == "docker":
            self.compose("build", timeout=BUILD_SECONDS)
            return
        mounts = [
            f"--volume={path}:{path}:ro" for path in os.environ.get("PIP_FIND_LINKS", "").split() if Path(path).is_dir()
        ]
        for image, (dockerfile, arguments) in IMAGES.items():
            given = [f"--build-arg={argument}" for argument in arguments]
            build = ["podman", "build", "--format=docker", "--network=host", "--file", dockerfile, "--tag", image]
            run([*build, *given, *mounts, "."], self.environment, self.root, timeout=BUILD_SECONDS)

    def upgrade(self, root: Path) -> None:
        """What its users do with a new version: build its images, and start what they changed."""
        self.root = root
        self.build()
        self.start()

    def exec(self, service: str, *command: str, stdin: bytes | None = None) -> str:
        """Run a command in a service's container."""
        return self.compose("exec", "-T", service, *command, stdin=stdin)

    def in_postgres(self, program: str, stdin: bytes | None = None) -> str:
        """Run a client of PostgreSQL in the database's container."""
        command = f'PGPASSWORD="$POSTGRES_PASSWORD" {program} --username axformer --host 127.0.0.1 axformer'
        return self.exec("postgres", "sh", "-c", command, stdin=stdin)

    def start(self, *options: str) -> None:
        """Start what does not run, and wait until all is healthy."""
        self.compose("up", "--detach", "--no-build", *options, timeout=START_SECONDS)
        self.until_ready()

    def kill(self, service: str) -> None:
        """Kill a service's containers as a machine does that runs out of memory, and start them again."""
        self.compose("kill", "--signal", "KILL", service)
        self.start("--no-recreate")

    def until_ready(self) -> None:
        """Wait until the API and all that it needs answer.

        Raises:
            TimeoutError: they do not; the message has what the API's container wrote last.
        """
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                if httpx2.get(f"{self.url}/readyz", timeout=5).status_code == httpx2.codes.OK:
                    return
            except httpx2.HTTPError:
                pass
            time.sleep(1)
        raise TimeoutError(f"{self.url}/readyz: {self.compose('logs', '--tail', '30', 'api')}")


@contextmanager
def running(root: Path = ROOT) -> Iterator[Stack]:
    """The stack from images that were built now from a checkout; it is removed with its volumes at the end.

    Raises:
        RuntimeError: no engine is here, or an image does not build.
    """
    with ExitStack() as undo:
        stack = _docker() or _podman(undo)
        stack.root = root
        stack.build()
        undo.callback(stack.compose, "down", "--volumes", "--timeout", "10")
        stack.start()
        yield stack


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    root: Path = ROOT,
    *,
    timeout: float,
    stdin: bytes | None = None,
) -> str:
    """Run a command in a checkout.

    Raises:
        RuntimeError: it failed; the message has what it wrote last.
    """
    ran = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, input=stdin, check=False, timeout=timeout
    )
    if ran.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {ran.returncode}: {ran.stderr.decode()[-4000:]}")
    return ran.stdout.decode()


def _docker() -> Stack | None:
    for command in (("docker", "info"), ("docker", "compose", "version")):
        if shutil.which("docker") is None or subprocess.run(command, capture_output=True, check=False).returncode:
            return None
    return Stack(["docker", "compose"], {})


def _podman(undo: ExitStack) -> Stack:
    if shutil.which("podman") is None:
        raise RuntimeError("neither docker with its compose plugin nor podman is here")
    place = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="axformer-containers-")))
    configuration = place / "containers.conf"
    configuration.write_text((Path(__file__).parent / "containers.conf").read_text())
    environment = {**os.environ, "CONTAINERS_CONF": str(configuration)}
    run(["bash", "tests/containers/bases.sh"], environment, timeout=BUILD_SECONDS)
    address = f"unix://{place}/podman.sock"
    service = subprocess.Popen(["podman", "system", "service", "--time=0", address], env=environment)
    undo.callback(service.wait)
    undo.callback(service.terminate)
    undo.enter_context(_checking_health(environment))
    return Stack([str(PLUGIN)], {**environment, "DOCKER_HOST": address})


@contextmanager
def _checking_health(environment: Mapping[str, str]) -> Iterator[None]:
    """Run the health checks of compose's containers, which podman leaves to timers of systemd; a pod's probes would end it."""
    ended = threading.Event()

    def check() -> None:
        while not ended.wait(HEALTH_EVERY):
            of_compose = ["--filter", "label=com.docker.compose.project", "--format", "{{.Names}}"]
            listed = run(["podman", "ps", *of_compose], environment, timeout=SECONDS)
            for name in listed.split():
                subprocess.run(
                    ["podman", "healthcheck", "run", name], env=environment, capture_output=True, check=False
                )

    thread = threading.Thread(target=check, name="health")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
