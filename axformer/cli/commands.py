"""A group of commands that are imported only when they are run or show their help; listing them imports none."""

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from axformer.cli.examples import EXAMPLES


@dataclass(frozen=True)
class Command:
    """A command in the list, and its module."""

    panel: str
    """Its heading in the list."""
    summary: str
    """The beginning of its help."""
    module: str = ""
    """Its module in this package; empty if it has the name of the command."""


class LazyGroup(TyperGroup):
    """Shows summaries, and imports only the requested command. A subclass lists the commands."""

    listed: ClassVar[Mapping[str, Command]]
    gone: ClassVar[Mapping[str, str]]
    """Commands of earlier versions, and what to do instead."""

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
        if args and args[0] in self.gone:
            ctx.fail(f"There is no command '{args[0]}' any more; {self.gone[args[0]]}")
        name, shown, rest = super().resolve_command(ctx, args)
        return name, None if shown is None or name is None else self.commands[name], rest


class _Loaded(MutableMapping[str, Any]):
    """Commands by name, each imported on access."""

    def __init__(self, listed: Mapping[str, Command]) -> None:
        self._listed = listed
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            about = self._listed[name]
            self._loaded[name] = _loaded(name, import_module(f"axformer.cli.{about.module or name}"))
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)


def _loaded(name: str, module: Any) -> Any:
    """Make a command from a module's function, or take the module's group of commands; its examples end its help."""
    found = getattr(module, name.replace("-", "_"))
    if isinstance(found, typer.Typer):
        command = get_command(found)
    else:
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name)(found)
        command = get_command(alone)
    examples = EXAMPLES.get(name, ())  # of the commands of `keys` only `keys` itself has any
    command.epilog = (
        "\n\n".join([f"{'Examples' if len(examples) > 1 else 'Example'}:", *examples]) if examples else None
    )
    return command
