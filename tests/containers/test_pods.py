"""The pods of ``docs/kubernetes`` do a job in podman, which stands in for a cluster. ``make compose-test``.

Database and broker are those of the compose file, the bucket is rclone's. What podman does not look at: probes that start a
program, network policies, and what a Deployment does with several pods.
"""

import base64
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from axformer.client import Client
from store.system.processes import free_port
from tests.containers.stack import END, MARKS, ROOT, SECONDS, Stack, run
from tests.object_store import KEY, KEY_ID

pytestmark = MARKS
MANIFESTS = ROOT / "docs/kubernetes"
IMAGES = {"axformer-api": "localhost/axformer-api:latest", "axformer-worker": "localhost/axformer-worker:cpu"}


def manifest(kind: str, name: str) -> dict[str, Any]:
    """One of the manifests."""
    files = (yaml.safe_load_all(path.read_text()) for path in MANIFESTS.glob("*.yaml"))
    documents = (document for file in files for document in file)
    (found,) = [one for one in documents if one["kind"] == kind and one["metadata"].get("name") == name]
    return dict(found)


def pod_of(kind: str, name: str) -> dict[str, Any]:
    """The pod that a cluster would make of a manifest, with the images that were built here."""
    template = manifest(kind, name)["spec"]["template"]
    for container in template["spec"]["containers"]:
        container["image"] = IMAGES[container["image"]]
        container["imagePullPolicy"] = "Never"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": template["metadata"] | {"name": name},
        "spec": template["spec"],
    }


class Pods:
    """Pods beside a stack, in its networks."""

    def __init__(self, stack: Stack, place: Path) -> None:
        self._stack, self._place, self.port = stack, place, free_port()
        self._settings = manifest("ConfigMap", "axformer")
        self._settings["data"]["AXFORMER_STORAGE_ENDPOINT"] = "http://bucket:9000"

    def podman(self, *arguments: str) -> str:
        return run(["podman", *arguments], self._stack.environment, timeout=SECONDS)

    def start_what_they_need(self) -> None:
        """A database and a bucket of their own, and the secrets of ``docs/several-hosts.md``."""
        self._stack.in_postgres("psql --command 'CREATE DATABASE pods'")
        password = self._stack.password
        secrets = {
            "DATABASE_URL": f"postgresql://axformer:{password}@postgres:5432/pods",
            "BROKER_URL": f"redis://:{password}@valkey:6379/1",
            "AXFORMER_SECRET_KEY": 2 * password,
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": KEY,
        }
        data = {name: base64.b64encode(value.encode()).decode() for name, value in secrets.items()}
        self.podman("secret", "create", "axformer", self._written("secret", json.dumps(data)))
        rclone = Path(sys.executable).with_name("rclone").resolve()
        serve = f"mkdir -p /tmp/store/models && exec /rclone serve s3 --addr :9000 --auth-key {KEY_ID},{KEY} /tmp/store"
        volume = f"--volume={rclone}:/rclone:ro"
        networks = f"--network={self._stack.project}_data"
        self.podman("run", "--detach", "--name=bucket", networks, volume, "axformer-base-trixie", "sh", "-c", serve)

    def play(self, kind: str, name: str) -> None:
        """Start the pod of a manifest."""
        networks = [f"--network={self._stack.project}_{network}" for network in ("data", "outside")]
        pod = pod_of(kind, name)
        for port in pod["spec"]["containers"][0].get("ports", ()):
            port.update(hostPort=self.port, hostIP="127.0.0.1")  # podman would take the machine's 8000
        settings = self._written("settings", yaml.safe_dump(self._settings))
        self.podman("play", "kube", *networks, f"--configmap={settings}", self._written(name, yaml.safe_dump(pod)))

    def until(self, happens: Callable[[], bool], pod: str) -> None:
        """Wait.

        Raises:
            TimeoutError: it does not happen; the message has what a pod's program wrote last.
        """
        deadline = time.monotonic() + SECONDS
        while not happens():
            if time.monotonic() > deadline:
                raise TimeoutError(self.podman("logs", "--tail", "30", f"{pod}-{pod.partition('-')[0]}"))
            time.sleep(1)

    def stop(self) -> None:
        self.podman("pod", "rm", "--force", "--ignore", "migrate", "api", "worker-cpu")
        self.podman("rm", "--force", "--ignore", "bucket")
        run(["podman", "secret", "rm", "axformer"], self._stack.environment, timeout=SECONDS)

    def _written(self, name: str, content: str) -> str:
        path = self._place / f"{name}.yaml"
        path.write_text(content)
        return str(path)


@pytest.fixture
def pods(stack: Stack, tmp_path: Path) -> Iterator[Pods]:
    if stack.program[0] == "docker":
        pytest.skip("podman runs pods")
    pods = Pods(stack, tmp_path)
    try:
        pods.start_what_they_need()
        yield pods
    finally:
        pods.stop()


def test_a_job_runs_in_the_pods_of_the_manifests(pods: Pods, inputs: dict[str, Path], tmp_path: Path) -> None:
    pods.play("Job", "migrate")
    pods.until(lambda: pods.podman("inspect", "--format={{.State.Status}}", "migrate-migrate") == "exited\n", "migrate")
    assert pods.podman("inspect", "--format={{.State.ExitCode}}", "migrate-migrate") == "0\n"
    pods.play("Deployment", "api")
    url = f"http://127.0.0.1:{pods.port}"
    pods.until(lambda: _is_ready(url), "api")
    pods.play("Deployment", "worker-cpu")
    created = pods.podman("exec", "api-api", "python", "-m", "api.admin", "team", "create", "nlp")
    with Client(url, re.findall("axk_[0-9a-f_]+", created)[0]) as client:
        job = client.submit("pods", **inputs, goal="operations=1.5", config={"accept_poor_model": True})
        job = client.wait(job.id, END)
        assert job.has_succeeded, job.error
        client.download(job.id, tmp_path / "result")
    assert (tmp_path / "result/hub/onnx/model_quantized.onnx").stat().st_size


def _is_ready(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/readyz", timeout=5).status_code == httpx2.codes.OK
    except httpx2.HTTPError:
        return False
