"""The resources of a worker process (settings, database, storage), and claiming jobs with them."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

import structlog
from sqlalchemy.orm import Session

from axformer.config import EARLIER
from axformer.config import KNOBS as KNOWN
from axformer.wire.devices import Device
from store.errors import StorageFullError, StorageUnavailableError
from store.ids import new_id
from store.migrate import newest_revision
from store.repositories.claims import claim_next
from store.repositories.line import Abilities, rules_of
from store.repositories.revision import database_revision
from store.repositories.workers import is_draining, note_worker
from store.session import Sessions, open_sessions, session_scope
from store.settings import Settings
from store.storage.storage import Storage, open_storage
from store.tables.jobs import Job
from worker.sandbox.errors import GpuUnusableError
from worker.sandbox.restrictions import gpu_devices
from worker.sandbox.sandboxes import Sandboxes

AUTO = "auto"


def with_device(settings: Settings, sandboxes: Sandboxes) -> Settings:
    """Put a device in the place of ``auto`` in the settings, and the memory that it has where they do not limit it; a sandbox
    finds both, since this process does not import PyTorch.

    Raises:
        SandboxError: the sandbox does not start, or this machine has a GPU that its processes cannot use.
    """
    ready = sandboxes.prepare().make_ready()
    if settings.device == AUTO and ready.auto == "cpu" and (devices := gpu_devices()):
        raise GpuUnusableError(
            f"there is a GPU here ({devices[0]}), and a job's process cannot use it: {ready.no_gpu}; mend that, or set"
            " AXFORMER_DEVICE=cpu to work on the processor"
        )
    device = ready.auto if settings.device == AUTO else settings.device
    kind, _, place = device.partition(":")
    gpus = {str(at): there_is for at, there_is in enumerate(ready.gpu_bytes)} if kind == "cuda" else {}
    memory = {
        "memory_bytes": _lesser(settings.memory_bytes, ready.host_bytes),
        "gpu_memory_bytes": _lesser(settings.gpu_memory_bytes, gpus.get(place or "0")),
    }
    return settings.model_copy(update={"device": device, **memory})


def _lesser(limit: int | None, there_is: int | None) -> int | None:
    return min((one for one in (limit, there_is) if one is not None), default=None)


def device_kind(name: str) -> Device:
    """The kind of a device, from its PyTorch name; ``auto`` is not allowed."""
    if name == AUTO:
        raise ValueError("'auto' is not a device yet; with_device says which one it is here")
    return Device.CPU if name.startswith("cpu") else Device.GPU


_FILE = "machine"
_PREFIX = "mch"


@cache
def machine_of(var_dir: Path) -> str:
    """The id of the machine whose jobs keep their state in this directory; it is given at the first call."""
    file = var_dir / _FILE
    if not file.exists():
        var_dir.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=var_dir, prefix=f".{_FILE}-") as made:
            made.write(new_id(_PREFIX))
            made.flush()
            with suppress(FileExistsError):  # another worker was first
                os.link(made.name, file)
    return file.read_text()


_LOG = structlog.get_logger(__name__)


def worker_name(pid: int) -> str:
    """Name of a process of this machine, as a worker or as the holder of a job."""
    return f"{socket.gethostname()}:{pid}"


@dataclass(frozen=True)
class WorkerContext:
    """The resources of a worker process."""

    settings: Settings
    sessions: Sessions
    storage: Storage
    sandboxes: Sandboxes
    """The confined processes for jobs; their creator closes them."""
    name: str = field(default_factory=lambda: worker_name(os.getpid()))
    """Name of the worker, after its main process, which outlives the processes that run its jobs."""


@contextmanager
def open_context(settings: Settings, sandboxes: Sandboxes, main_pid: int | None = None) -> Iterator[WorkerContext]:
    """Open a context for the worker with this main process, or for this process alone; it closes its connections at the end."""
    name = worker_name(os.getpid() if main_pid is None else main_pid)
    with open_sessions(settings) as sessions:
        yield WorkerContext(settings, sessions, open_storage(settings), sandboxes, name)


def make_known(context: WorkerContext) -> None:
    """Register this worker with its queue and its device."""
    with session_scope(context.sessions) as session:
        if is_compatible(session):
            _make_known(session, context)


def claim_job(context: WorkerContext) -> Job | None:
    """Claim the next job that this worker can do for this process; None if there is none."""
    settings = context.settings
    if not _can_store(context.storage):
        return None
    with session_scope(context.sessions) as session:
        if not is_compatible(session):
            _LOG.warning("schema_differs", database=database_revision(session), worker=newest_revision())
            return None
        _make_known(session, context)
        if is_draining(session, context.name):
            return None
        process = worker_name(os.getpid())
        return claim_next(session, process, settings.lease_seconds, able=abilities(settings), rules=rules_of(settings))


def _can_store(storage: Storage) -> bool:
    """Whether the storage takes what a job would make; without it, jobs wait where they are."""
    try:
        storage.check()
    except (StorageUnavailableError, StorageFullError) as error:
        _LOG.error("storage_unavailable", reason=str(error))
        return False
    return True


def abilities(settings: Settings) -> Abilities:
    """What this worker is able to run."""
    kind = device_kind(settings.device)
    memory = settings.memory_bytes if kind is Device.CPU else settings.gpu_memory_bytes
    return Abilities(kind, KNOBS, machine_of(settings.var_dir), memory)


def _make_known(session: Session, context: WorkerContext) -> None:
    able, process = abilities(context.settings), worker_name(os.getpid())
    note_worker(session, context.name, process, context.settings.celery_queue, able.device, able.machine, able.memory)


KNOBS = frozenset(KNOWN) | EARLIER
"""The knobs that this worker knows, including those of earlier versions."""


def is_compatible(session: Session) -> bool:
    """Whether the database has the schema that this worker knows."""
    return database_revision(session) == newest_revision()
