"""The versions that advisories ask for are installed, and what they warn of is not."""

import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.version import Version

CONSTRAINTS = (Path(__file__).parents[2] / "constraints.txt").read_text()
FLOORS = re.findall(r"^#   ([\w-]+) ([0-9.]+): ", CONSTRAINTS, re.MULTILINE)


@pytest.mark.parametrize(("package", "floor"), FLOORS)
def test_what_is_installed_is_above_the_floor(package: str, floor: str) -> None:
    assert Version(version(package)) >= Version(floor)


def test_every_floor_is_looked_at() -> None:
    assert {"torch", "transformers", "huggingface_hub"} <= {package for package, _ in FLOORS}


def test_nothing_by_which_a_configuration_loads_code_is_installed() -> None:
    assert find_spec("kernels") is None
    assert "\nkernels==" not in CONSTRAINTS
