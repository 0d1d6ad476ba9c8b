"""What a job's process is given: an environment, files and bounds. :mod:`worker.sandbox.launch` denies everything else."""

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import axformer
from axformer.reporting.commit import COMMIT, commit
from store.settings import Settings

ROOT = Path(__file__).parents[2]
"""Where this package is imported from."""

_PASSED_ON = frozenset({"LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "TZ"})
_PASSED_ON_BEGIN = ("CUDA_", "KMP_", "MKL_", "NVIDIA_", "OMP_", "OPENBLAS_", "PYTORCH_")
"""How numbers are computed and on which GPU; nobody keeps secrets in these."""
_FIXED = {
    # A job's process has no network, and should not wait for one.
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # a thread is no good where a process forks
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONSAFEPATH": "1",
    "USER": "axformer",  # else libraries look for the name in files and sockets
}
NOWHERE = Path("/nonexistent")
"""The home of a process that has no job yet."""
_DEFAULTS = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads that wait by spinning take the cores from others."""

_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/sbin")
_CONFIGURATION = (
    *("/etc/alternatives", "/etc/group", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf"),
    *("/etc/os-release", "/etc/passwd", "/etc/ssl/openssl.cnf", "/etc/timezone"),
)
_KERNEL = ("/dev/random", "/dev/urandom", "/dev/zero", "/proc", "/sys")
"""Of other processes ``/proc`` shows what every user sees: the kernel keeps their memory and environment to their own."""
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
    file_bytes: int
    open_files: int = _OPEN_FILES
    processes: int = _PROCESSES

    def as_dict(self) -> Mapping[str, object]:
        """The form in which it is handed over."""
        return asdict(self)


def specification(inputs: Path, outputs: Path, settings: Settings) -> Specification:
    """The restrictions of one job.

    Args:
        inputs: what it may read.
        outputs: where it may write.
        settings: of the worker.
    """
    packages = (ROOT / "worker", Path(axformer.__file__).parent)
    python = dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))
    libraries = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if path]
    devices = ("/dev/null", *sorted(str(path) for path in Path("/dev").glob("nvidia*")))
    return Specification(
        listed=(str(ROOT),),  # Python looks for packages by the names that are there
        read=(*python, *map(str, packages), *libraries, *_SYSTEM, *_CONFIGURATION, *_KERNEL, str(inputs)),
        write=(str(outputs),),
        devices=devices,
        file_bytes=settings.sandbox_file_bytes,
    )


def environment(of: Mapping[str, str], outputs: Path) -> dict[str, str]:
    """What a job's process sees of an environment: a list of names, so that a secret with a new name is not in it.

    Args:
        of: the worker's own.
        outputs: where the process may write.
    """
    passed = {name: value for name, value in of.items() if name in _PASSED_ON or name.startswith(_PASSED_ON_BEGIN)}
    own = {"HOME": str(outputs), "TMPDIR": str(outputs), "PYTHONPATH": str(ROOT), COMMIT: commit() or ""}
    return _DEFAULTS | passed | _FIXED | own
