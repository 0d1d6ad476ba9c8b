"""Commands that an analysis advises, run up to where work begins."""

import shlex
from typing import Any

from typer.main import get_command

from axformer.cli import options
from axformer.cli.main import app
from axformer.config import AnyConfig


def parsed(command: str) -> dict[str, Any]:
    """The arguments of a command, parsed by the command line itself."""
    group: Any = get_command(app)
    context = group.make_context("axformer", shlex.split(command)[1:])
    _, found, rest = group.resolve_command(context, [*context._protected_args, *context.args])
    return {"command": found.name, **found.make_context(found.name, rest).params}


def config_of(arguments: dict[str, Any]) -> AnyConfig:
    """The knobs of a parsed ``axformer prune``."""
    flags = options.flags_of(method=arguments["method"], within_points=None, accept_poor_model=False)
    config = options.config_from(arguments["goal"], None, options.knobs_of(None, arguments["set_"]) | flags)
    options.training_of(arguments["train"], arguments["finetune"], arguments["head"], config.method)
    options.columns_of(arguments["columns"])
    return config
