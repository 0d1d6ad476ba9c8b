"""Commands that an analysis advises, run up to where work begins."""

import shlex
from dataclasses import fields
from typing import Any

from typer.main import get_command

from axformer.cli.main import app
from axformer.cli.options import RunOptions
from axformer.config import RunConfig


def parsed(command: str) -> dict[str, Any]:
    """The arguments of a command, parsed by the command line itself."""
    group: Any = get_command(app)
    context = group.make_context("axformer", shlex.split(command)[1:])
    _, found, rest = group.resolve_command(context, [*context._protected_args, *context.args])
    return {"command": found.name, **found.make_context(found.name, rest).params}


def config_of(arguments: dict[str, Any]) -> RunConfig:
    """The knobs of a parsed ``axformer prune``."""
    names = {field.name for field in fields(RunOptions)}
    return RunOptions(**{name: value for name, value in arguments.items() if name in names}).run().settled().knobs
