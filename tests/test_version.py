"""The version stands in one place, and everything that says one says that."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from axformer import __version__
from axformer.cli.main import app
from axformer.reporting.environment import describe
from docs.hooks.reference import document

ROOT = Path(__file__).parents[1]


def test_the_package_is_built_with_the_version_of_the_code():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    source = (ROOT / project["tool"]["hatch"]["version"]["path"]).read_text()
    assert re.findall(r'^__version__ = "(.*)"$', source, re.M) == [__version__]


def test_api_commands_and_reports_say_it():
    assert document()["info"]["version"] == __version__
    assert CliRunner().invoke(app, ["--version"]).stdout == f"axformer {__version__}\n"
    assert describe("cpu")["axformer"] == __version__


@pytest.mark.parametrize("name", ["Dockerfile.api", "Dockerfile.worker"])
def test_images_say_it(name):
    text = (ROOT / name).read_text()
    assert re.findall(r'org\.opencontainers\.image\.version="(.*)"', text) == [__version__]


def test_the_citation_says_it_and_the_licence_is_there():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (__version__, "Apache-2.0")
    assert "Version 2.0, January 2004" in (ROOT / "LICENSE").read_text()
