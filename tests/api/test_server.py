"""Several processes of the API serve one port, and answer as one."""

import os
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import httpx2
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from api.server import SILENT_SECONDS
from store.serve.stack import Program, Stack
from store.settings import Settings
from store.system.processes import LOOPBACK, free_port
from tests.api.conftest import Crew

PROCESSES = 2
READY_SECONDS = 120
IDLE_SECONDS = 5.5
"""A little longer than uvicorn keeps an idle connection if nobody says otherwise."""
REQUESTS = 24


@pytest.fixture
def server(settings: Settings, tmp_path: Path) -> Iterator[str]:
    """The address of an API of several processes."""
    environment = os.environ | {
        "DATABASE_URL": settings.database_url.get_secret_value(),
        "BROKER_URL": settings.broker_url.get_secret_value(),
        "AXFORMER_VAR_DIR": str(settings.var_dir),
        "TMPDIR": str(tmp_path),
    }
    port = free_port()
    arguments = ["api.server", "--host", LOOPBACK, "--port", str(port), "--workers", str(PROCESSES)]
    with Stack() as stack:
        stack.add_program(Program("api", arguments, tmp_path / "api.log", environment, 30))
        stack.wait_until_ready(port, READY_SECONDS)
        yield f"http://{LOOPBACK}:{port}"
    assert not list(tmp_path.glob("axformer-metrics-*")), "what they counted together goes with them"


def counted(server: str, crew: Crew) -> dict[tuple[str, ...], float]:
    """What ``/metrics`` says, by name and labels."""
    answer = httpx2.get(f"{server}/v1/metrics", headers=crew.headers)
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


@pytest.mark.slow
def test_metrics_are_those_of_all_processes_also_of_one_that_died(server: str, crew: Crew) -> None:
    (parent,) = [one for one in psutil.Process().children() if "api.server" in one.cmdline()]
    processes = [one for one in parent.children() if "spawn_main" in " ".join(one.cmdline())]
    assert len(processes) == PROCESSES
    for _ in range(REQUESTS):
        assert (
            httpx2.get(f"{server}/v1/jobs/job_1", headers=crew.headers).status_code == 404
        )  # on a new connection each
    processes[0].kill()
    processes[0].wait(2 * SILENT_SECONDS)  # its parent may just have asked it for an answer, and waits for that first
    for _ in range(REQUESTS):
        samples = counted(server, crew)
        assert samples["axformer_http_requests_total", "/v1/jobs/{job_id}", "404", "GET"] == REQUESTS
        assert samples["axformer_http_request_seconds_count", "/v1/jobs/{job_id}", "GET"] == REQUESTS
        assert samples["axformer_jobs", "queued"] == 0


@pytest.mark.slow
def test_a_client_that_asks_every_few_seconds_keeps_its_connection(server: str) -> None:
    with closing(HTTPConnection(LOOPBACK, int(server.rpartition(":")[2]))) as connection:
        connection.request("GET", "/healthz")
        assert connection.getresponse().read()
        opened = connection.sock
        time.sleep(IDLE_SECONDS)
        connection.request("GET", "/healthz")
        assert connection.getresponse().read()
        assert connection.sock is opened
