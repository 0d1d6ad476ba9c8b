"""Environments that hold some distributions and what these need, and nothing else.

The files are those of the environment that the tests run in, linked one by one, so that no large package is installed anew.
What is linked is what the distributions' own metadata names, transitively.
"""

import subprocess
import sysconfig
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SCRIPTS = ".."
"""How the path of a file begins that lies beside the packages."""


class BareEnvironment:
    """A Python of its own."""

    def __init__(self, home: Path) -> None:
        """Make one without any distribution, in a directory that is not there yet."""
        venv.create(home, with_pip=False)
        self.python = home / "bin" / "python"
        self.packages = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))

    def add(self, wanted: Iterable[str]) -> set[str]:
        """Link distributions and all that they need; gives their names."""
        there: dict[str, Distribution] = {}
        open_ends = [Requirement(name) for name in wanted]
        while open_ends:
            requirement = open_ends.pop()
            name = canonicalize_name(requirement.name)
            if name in there:
                continue
            there[name] = distribution(name)
            open_ends += needs_of(there[name], requirement.extras)
        for one in there.values():
            self._link(one)
        return set(there)

    def run(self, code: str, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run Python code there, which sees no module of the directory that it runs in."""
        command = [self.python, "-I", "-c", code, *arguments]
        environment = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)

    def holds(self, *modules: str) -> list[str]:
        """Which of these modules can be found there."""
        code = "import importlib.util as u, sys; print(*[name for name in sys.argv[1:] if u.find_spec(name)])"
        ran = self.run(code, *modules, cwd=self.python.parent)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.split()

    def _link(self, one: Distribution) -> None:
        """Link the top-level files and directories of a distribution."""
        for top in {file.parts[0] for file in one.files or ()} - {SCRIPTS}:
            target, link = Path(str(one.locate_file(top))), self.packages / top
            if target.exists() and not link.exists():
                link.symlink_to(target)


def needs_of(one: Distribution, extras: Iterable[str] = ()) -> list[Requirement]:
    """What a distribution needs in this Python, with some of its extras."""
    found = [Requirement(text) for text in one.requires or ()]
    choices = [{"extra": extra} for extra in ("", *extras)]
    return [need for need in found if need.marker is None or any(need.marker.evaluate(choice) for choice in choices)]
