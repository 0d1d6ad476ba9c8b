"""The command line. Each command is a file of this package; this one puts them together."""

import typer

from axformer.cli.apply import apply
from axformer.cli.bench import bench
from axformer.cli.diff import diff
from axformer.cli.export import export
from axformer.cli.families import families
from axformer.cli.prune import prune

app = typer.Typer(
    name="axformer",
    help="Make fine-tuned transformers more accurate, smaller and faster without training.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.command()(prune)
app.command()(apply)
app.command()(diff)
app.command()(bench)
app.command()(export)
app.command()(families)
