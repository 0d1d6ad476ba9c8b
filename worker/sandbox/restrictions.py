"""What a job's process may use: environment, files and limits. :mod:`worker.sandbox.launch` denies everything else."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import axformer
from axformer.reporting.environment import COMMIT, commit
from store.settings import Settings

ROOT = Path(__file__).parents[2]
"""The directory that this package is imported from."""

_PASSED_ON = frozenset({"LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "TZ"})
_PASSED_ON_BEGIN = ("CUDA_", "KMP_", "MKL_", "NVIDIA_", "OMP_", "OPENBLAS_", "PYTORCH_")
"""Variables that control computation and choose a GPU; they hold no secrets."""
_FIXED = {
    # A job's process has no network, and should not wait for one.
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # a background thread would not survive a fork
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONSAFEPATH": "1",
    "USER": "axformer",  # otherwise libraries look up the name in files and sockets
}
NOWHERE = Path("/nonexistent")
"""Home directory of a process that has no job yet."""
_DEFAULTS = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Waiting threads that spin would take the cores from other processes."""

_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/sbin")
_CONFIGURATION = (
    *("/etc/alternatives", "/etc/group", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf"),
    *("/etc/os-release", "/etc/passwd", "/etc/ssl/openssl.cnf", "/etc/timezone"),
)
_KERNEL = ("/dev/random", "/dev/urandom", "/dev/zero", "/proc", "/sys")
"""Of other processes, ``/proc`` shows only what every user may see; the kernel protects their memory and environment."""
NAMES_OF_THREADS = ("/proc/self/task",)
"""CUDA names its threads there, and does not start where it cannot."""
_OPEN_FILES = 4096
_PROCESSES = 4096
"""Threads count too, and a machine may have hundreds of cores."""


@dataclass(frozen=True)
class Specification:
    """What :mod:`worker.sandbox.launch` allows a process."""

    listed: tuple[str, ...]
    read: tuple[str, ...]
    write: tuple[str, ...]
    devices: tuple[str, ...]
    has_gpu: bool
    """Whether a GPU is among the devices, and CUDA must be able to start."""
    file_bytes: int
    open_files: int = _OPEN_FILES
    processes: int = _PROCESSES


def specification(inputs: Path, outputs: Path, settings: Settings) -> Specification:
    """The restrictions of one job.

    Args:
        inputs: directory that the job may read.
        outputs: directory that it may write to.
    """
    packages = (ROOT / "worker", Path(axformer.__file__).parent)
    python = dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, sys.executable))
    libraries = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if path]
    gpu = gpu_devices()
    return Specification(
        listed=(str(ROOT),),  # Python lists this directory to find packages
        read=(*python, *map(str, packages), *libraries, *_SYSTEM, *_CONFIGURATION, *_KERNEL, str(inputs)),
        write=(str(outputs),),
        devices=("/dev/null", *gpu, *(NAMES_OF_THREADS if gpu else ())),
        has_gpu=bool(gpu),
        file_bytes=settings.sandbox_file_bytes,
    )


def gpu_devices() -> tuple[str, ...]:
    """The devices of this machine's NVIDIA driver; empty where there is none, or where the operator hides them from CUDA."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return ()
    return tuple(sorted(str(path) for path in Path("/dev").glob("nvidia*")))


def environment(of: Mapping[str, str], outputs: Path) -> dict[str, str]:
    """The environment of a job's process. Variables are passed on from an allow-list, so that new secrets never leak.

    Args:
        of: the worker's environment.
        outputs: directory that the process may write to.
    """
    passed = {name: value for name, value in of.items() if name in _PASSED_ON or name.startswith(_PASSED_ON_BEGIN)}
    own = {"HOME": str(outputs), "TMPDIR": str(outputs), "PYTHONPATH": str(ROOT), COMMIT: commit() or ""}
    return _DEFAULTS | passed | _FIXED | own
