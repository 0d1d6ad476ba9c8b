"""The library as it is handed out: a wheel and an sdist that an index takes, and that work where there is no checkout."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from axformer import __version__
from axformer.cli.failing import EXIT_MISSED
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_rows, write_rows

ROOT = Path(__file__).parents[1]
NAME = f"axformer-{__version__}"

pytestmark = pytest.mark.slow


def ran(command: Sequence[str | Path], directory: Path, well: Sequence[int] = (0,)) -> str:
    """What a program prints that ends with one of the exit codes, and whose environment names no place of Python's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = kept | {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in well, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with both, made as ``make dist`` makes them."""
    directory = tmp_path_factory.mktemp("dist")
    ran([sys.executable, "-m", "build", "--outdir", directory, ROOT], directory)
    return directory


def files_of_the_library() -> set[str]:
    """Those that are there and not ignored."""
    files = (path for path in (ROOT / "axformer").rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(ROOT).as_posix() for path in files}


def test_an_index_takes_both(built: Path) -> None:
    ran([sys.executable, "-m", "twine", "check", "--strict", *built.iterdir()], built)


def test_the_wheel_holds_the_library_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(built / f"{NAME}-py3-none-any.whl") as wheel:
        names = {name for name in wheel.namelist() if not name.startswith(f"{NAME}.dist-info/")}
    assert names == files_of_the_library()


def test_the_sdist_holds_the_library_and_what_it_is_built_by(built: Path) -> None:
    with tarfile.open(built / f"{NAME}.tar.gz") as sdist:
        names = {name.removeprefix(f"{NAME}/") for name in sdist.getnames()}
    beside = {"CITATION.cff", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", ".gitignore"}
    assert names == files_of_the_library() | beside


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds the wheel, and sees the other packages of this one, but not the checkout."""
    directory = tmp_path_factory.mktemp("environment")
    venv.create(directory, with_pip=False, symlinks=True)
    python = directory / "bin" / "python"
    wheel = built / f"{NAME}-py3-none-any.whl"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    ran([*pip, wheel], directory)
    place = Path(ran([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], directory).strip())
    # A path in a .pth file is searched, and the .pth file in it, by which the checkout is found, is not read.
    (place / "others.pth").write_text(sysconfig.get_path("purelib"))
    return directory / "bin"


def test_the_wheel_works_where_there_is_no_checkout(installed: Path, tmp_path: Path) -> None:
    where = ran([installed / "python", "-c", "import axformer, sys; print(axformer.__file__, *sys.path)"], tmp_path)
    assert str(installed.parent) in where
    assert str(ROOT) not in {str(Path(path)) for path in where.split()}
    assert ran([installed / "axformer", "--version"], tmp_path) == f"axformer {__version__}\n"
    assert "target_speedup" in ran([installed / "axformer", "knobs"], tmp_path)
    save_tiny_checkpoint(tmp_path / "mine", tiny_config(layers=1))
    assert "Wrote mine-int8/hub/onnx/model_quantized.onnx" in ran([installed / "axformer", "mine"], tmp_path)
    write_rows(tmp_path / "dev.jsonl", tiny_rows(60))
    wish = ["--goal", "speedup=1.2", "--forms", "compact", "--set", "accept_poor_model=true"]
    ran(
        [installed / "axformer", "prune", "mine", "--data", "dev.jsonl", "--output", "smaller", *wish],
        tmp_path,
        (0, EXIT_MISSED),  # it ended well, though a model that guesses is of no use
    )
    assert "## What you can deploy" in (tmp_path / "smaller" / "README.md").read_text("utf-8")
    assert "<style>" in (tmp_path / "smaller" / "report.html").read_text("utf-8")
