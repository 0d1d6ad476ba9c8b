"""Running the commands as people and scripts do."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from axformer.cli.main import app as commands

logged_in = pytest.mark.usefixtures("_logged_in")


def run(*arguments: object, typed: str = "") -> Result:
    """A command, however it ends."""
    return CliRunner().invoke(commands, [str(argument) for argument in arguments], input=typed)


def ran(*arguments: object) -> str:
    """What a command prints that ends well and has nothing to complain of."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def answered(*arguments: object) -> Any:
    """What a command answers as JSON."""
    return json.loads(ran(*arguments, "--json"))
