"""A worker makes itself known when it looks for a job, and takes those that its device can do."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from axformer.evaluation.budget import total_bytes
from axformer.wire.devices import Device
from store.repositories.workers import living_workers
from store.session import Sessions, session_scope
from store.settings import Settings
from store.tables.workers import Worker
from tests.worker.conftest import Post
from tests.worker.unconfined import Unconfined
from worker.base.context import (
    abilities,
    claim_job,
    device_kind,
    machine_of,
    make_known,
    open_context,
    with_device,
    worker_name,
)
from worker.sandbox.errors import GpuUnusableError
from worker.sandbox.sandboxes import Sandboxes


@pytest.mark.parametrize(
    ("name", "kind"), [("cpu", Device.CPU), ("cuda", Device.GPU), ("cuda:1", Device.GPU), ("mps", Device.GPU)]
)
def test_a_device_is_of_a_kind(name: str, kind: Device) -> None:
    assert device_kind(name) is kind


def test_which_device_is_found_the_process_of_the_jobs_says(settings: Settings) -> None:
    settings = settings.model_copy(update={"device": "auto"})
    with Sandboxes(settings, Unconfined) as sandboxes:
        found = with_device(settings, sandboxes)
        limited = with_device(settings.model_copy(update={"device": "cpu", "memory_bytes": 1000}), sandboxes)
    assert device_kind(found.device) in (Device.CPU, Device.GPU)
    assert abilities(found).memory == (total_bytes(found.device))
    assert abilities(limited).memory == 1000
    with pytest.raises(ValueError, match="not a device yet"):
        device_kind("auto")


def test_a_gpu_that_the_processes_of_jobs_cannot_use_is_no_silent_cpu(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    if torch.cuda.is_available():
        pytest.skip("the GPU here can be used")
    monkeypatch.setattr("worker.base.context.gpu_devices", lambda: ("/dev/nvidia0",))
    settings = settings.model_copy(update={"device": "auto"})
    with (
        Sandboxes(settings, Unconfined) as sandboxes,
        pytest.raises(
            GpuUnusableError, match=r"\(/dev/nvidia0\), and a job's process cannot use it: Torch not compiled"
        ),
    ):
        with_device(settings, sandboxes)


def test_workers_with_one_directory_are_one_machine_also_after_a_restart(tmp_path: Path) -> None:
    here, elsewhere = machine_of(tmp_path / "here"), machine_of(tmp_path / "elsewhere")
    machine_of.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: machine_of.__wrapped__(tmp_path / "here"), range(8))) == {here}
        found = set(pool.map(lambda _: machine_of.__wrapped__(tmp_path / "new"), range(8)))
    assert len(found) == 1
    assert found.isdisjoint({here, elsewhere})
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["machine"]


def test_a_worker_is_known_before_it_has_a_job_and_takes_what_fits(
    sessions: Sessions, settings: Settings, post: Post
) -> None:
    post(device=Device.GPU)
    fitting = post(device=Device.CPU)
    with open_context(settings, Sandboxes(settings), main_pid=7) as context:
        make_known(context)
        with session_scope(sessions) as session:
            (known,) = living_workers(session, settings.lease_seconds)
        assert (known.name, known.queue, known.device) == (worker_name(7), settings.celery_queue, Device.CPU)
        job = claim_job(context)
        assert job is not None
        assert (job.id, job.worker) == (fitting, known.process)
        assert job.machine == known.machine == machine_of(settings.var_dir)
        assert claim_job(context) is None


def test_a_worker_that_drains_takes_no_job_and_stays_so_when_it_looks_again(
    sessions: Sessions, settings: Settings, post: Post
) -> None:
    job_id = post()
    with (
        open_context(settings, Sandboxes(settings), main_pid=7) as drained,
        open_context(settings, Sandboxes(settings), main_pid=8) as other,
    ):
        make_known(drained)
        with session_scope(sessions) as session:
            session.get_one(Worker, drained.name).is_draining = True
        assert claim_job(drained) is None
        make_known(drained)
        assert claim_job(drained) is None
        job = claim_job(other)
        assert job is not None
        assert job.id == job_id
