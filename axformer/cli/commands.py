"""A group of commands that are imported only when they are run or show their help; listing them imports none."""

from collections import UserDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

_CONFIG = "config.json"
"""What marks a checkpoint's directory."""


@dataclass(frozen=True)
class Command:
    """A command in the list, and its module."""

    panel: str
    """Its heading in the list."""
    summary: str
    """The beginning of its help."""
    examples: Sequence[str]
    """The end of its help."""
    module: str
    """Its module in this package."""


class LazyGroup(TyperGroup):
    """Shows summaries, and imports only the requested command. A subclass lists the commands."""

    listed: ClassVar[Mapping[str, Command]]
    gone: ClassVar[Mapping[str, str]]
    """Commands of earlier versions, also ``command --option``, and what to do instead."""
    of_a_checkpoint: ClassVar[tuple[str, str]]
    """The commands that take the place of none where a checkpoint's directory comes first: alone, and with rows behind it."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Loaded(self.listed)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands, in order."""
        del ctx
        return list(self.listed)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """The command as the list shows it; None if it does not exist."""
        del ctx
        about = self.listed.get(cmd_name)
        return None if about is None else TyperCommand(cmd_name, help=about.summary, rich_help_panel=about.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Split arguments into the command and what follows its name."""
        for asked in args[:1] + [f"{args[0]} {one.partition('=')[0]}" for one in args[1:]]:
            if asked in self.gone:
                ctx.fail(f"There is no command '{asked}' any more; {self.gone[asked]}")
        if args and args[0] not in self.listed and Path(args[0], _CONFIG).is_file():
            has_rows = len(args) > 1 and not args[1].startswith("-")
            args = [self.of_a_checkpoint[has_rows], *args]
        name, shown, rest = super().resolve_command(ctx, args)
        return name, None if shown is None or name is None else self.commands[name], rest


class _Loaded(UserDict[str, Any]):
    """Commands by name, each imported on access."""

    def __getitem__(self, name: str) -> Any:
        command = super().__getitem__(name)
        if isinstance(command, Command):
            command = self.data[name] = _loaded(name, command)
        return command


def _loaded(name: str, about: Command) -> Any:
    """Make a command from a module's function, or take the module's group of commands."""
    found = getattr(import_module(f"axformer.cli.{about.module}"), name.replace("-", "_"))
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name)(found)
        found = alone
    command = get_command(found)
    command.epilog = "\n\n".join(["Examples:" if len(about.examples) > 1 else "Example:", *about.examples])
    return command
