"""The command line. Each command is a file of this package; this one puts them together.

None of them imports PyTorch before it needs it, so that help and the commands that speak with the service come at once.
"""

from collections.abc import Callable
from typing import Any

import typer

from axformer.cli.apply import apply
from axformer.cli.bench import bench
from axformer.cli.characters import replace_unknown_characters
from axformer.cli.compare import compare
from axformer.cli.diff import diff
from axformer.cli.download import download
from axformer.cli.export import export
from axformer.cli.families import families
from axformer.cli.grid import grid
from axformer.cli.group import group, groups
from axformer.cli.jobs import jobs
from axformer.cli.keys import keys
from axformer.cli.login import login
from axformer.cli.path import path
from axformer.cli.plot import plot
from axformer.cli.prune import prune
from axformer.cli.queue import queue
from axformer.cli.show import show
from axformer.cli.steer import cancel, pause, resume, retry
from axformer.cli.submit import submit
from axformer.cli.trace import trace
from axformer.cli.upload import upload
from axformer.cli.watch import watch

_HERE, _SERVICE = "On this machine", "On the service"


class _Commands(typer.Typer):
    """The commands, on any console."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        replace_unknown_characters()
        return super().__call__(*args, **kwargs)


app = _Commands(
    name="axformer",
    help="Make fine-tuned transformers more accurate, smaller and faster without training.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
_LOCAL: tuple[Callable[..., None], ...] = (prune, apply, diff, bench, export, families, plot)
_REMOTE: tuple[Callable[..., None], ...] = (
    *(login, upload, submit, watch, jobs, show, queue, trace, download),
    *(path, cancel, pause, resume, retry, compare, grid, group, groups),
)
for panel, commands in ((_HERE, _LOCAL), (_SERVICE, _REMOTE)):
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(keys, name="keys", rich_help_panel=_SERVICE)
