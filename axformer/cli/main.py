"""The command line. Each command is a module of this package; this module lists them.

A command is imported only when it is used, and imports PyTorch only when it needs it, so that help and the commands for the
service start quickly.
"""

import os
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import typer

from axformer import __version__
from axformer.cli.characters import replace_unknown_characters
from axformer.cli.commands import Command, LazyGroup

_HERE, _SERVICE = "On this machine", "On the service"


class _Listed(LazyGroup):
    """The commands, in the order in which they are shown."""

    listed: ClassVar[Mapping[str, Command]] = {
        "prune": Command(_HERE, "Prune a fine-tuned model, and write the smaller, verified model."),
        "apply": Command(
            _HERE, "Apply a plan to a checkpoint without another pass, and write the forms of the result."
        ),
        "analyze": Command(
            _HERE, "Say where a model is redundant: layers, heads, dimensions. The model stays as it is."
        ),
        "features": Command(_HERE, "Keep the lowest layers and the fewest dimensions that a linear classifier needs."),
        "diff": Command(_HERE, "Compare two plans of one model, layer by layer."),
        "bench": Command(_HERE, "Compare all forms of a result: speed, loading, memory and answers."),
        "disagree": Command(_HERE, "Write the rows on which two models answer differently: only these need labels."),
        "certify": Command(
            _HERE,
            "Test with 95 % confidence whether a model has lost less than some points of accuracy; exit code 1 if not.",
        ),
        "export": Command(_HERE, "Write more forms of a finished result, without its checkpoint."),
        "knobs": Command(_HERE, "List the knobs, or explain one."),
        "orders": Command(
            _HERE, "Prune a model once in each order of its top, middle and bottom layers, and compare the results."
        ),
        "families": Command(_HERE, "List the supported model families, and the tasks of each."),
        "plot": Command(_HERE, "Write the pictures of a pass as SVG."),
        "login": Command(_SERVICE, "Store the address of the service and a key, readable by you alone."),
        "upload": Command(_SERVICE, "Upload a file or a checkpoint's directory, and print its reference for jobs."),
        "submit": Command(_SERVICE, "Queue a job for a checkpoint and its data, and print its id."),
        "submit-analysis": Command(
            _SERVICE, "Queue an analysis of a model, and print its id.", module="submit_analysis"
        ),
        "watch": Command(_SERVICE, "Follow a job to its end; exit code 0 only if it succeeds."),
        "jobs": Command(_SERVICE, "List your team's jobs, the newest first."),
        "show": Command(_SERVICE, "Show a job: its inputs, its state and its result."),
        "queue": Command(
            _SERVICE,
            "Show your team's unfinished jobs, when they should start and end, and the number of workers.",
        ),
        "trace": Command(_SERVICE, "Print or write the trials of a job so far."),
        "download": Command(_SERVICE, "Download a finished job's files, each verified by its SHA-256."),
        "path": Command(
            _SERVICE,
            "Show what speed costs along the path of a finished run, and which of its models to take for a wish.",
        ),
        "cancel": Command(
            _SERVICE, "Cancel a job: a queued one at once, a running one at its next trial.", module="steer"
        ),
        "pause": Command(_SERVICE, "Pause a job at its next trial; it keeps its trace.", module="steer"),
        "resume": Command(_SERVICE, "Resume a paused job where its trace ends.", module="steer"),
        "retry": Command(_SERVICE, "Run a failed or cancelled job again from the start.", module="steer"),
        "deliver": Command(_SERVICE, "Put a job's files into a bucket or a repository of the model hub."),
        "compare": Command(
            _SERVICE, "Compare jobs and local results: the knobs in which they differ, and the result of each."
        ),
        "keys": Command(_SERVICE, "List, create, rotate and revoke your team's keys; for admins."),
    }
    gone: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("grid", "group", "groups"),
        "queue each run by axformer submit --label sweep=NAME, and see them by axformer compare --label sweep=NAME",
    )


class _Commands(typer.Typer):
    """The commands, on any console."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        replace_unknown_characters()
        # Set before PyTorch is imported: waiting threads that spin slow each other down on a shared machine.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        return super().__call__(*args, **kwargs)


app = _Commands(name="axformer", cls=_Listed, no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"axformer {__version__}")
        raise typer.Exit


@app.callback()
def _axformer(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Shrink and speed up fine-tuned transformers without retraining, and measure what it costs."""
