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

_HERE = {
    "prune": "Prune a fine-tuned model, and write the smaller, verified model.",
    "slim": "Write a model as it is in ONNX int8, then the smallest of four smaller ones that the rows can vouch for.",
    "int8": "Write a model as it is in ONNX and ONNX int8, checked and timed: no data, no labels, nothing removed.",
    "trim": "Write a checkpoint without the tokens that texts of some scripts, or given texts, never have.",
    "apply": "Apply a plan to a checkpoint without another pass, and write the forms of the result.",
    "analyze": "Say where a model is redundant: layers, heads, dimensions. The model stays as it is.",
    "split": "Cut rows into some to train on and some to validate with, the same share of every class.",
    "diff": "Compare two plans of one model, layer by layer.",
    "bench": "Compare all forms of a result: speed, loading, memory and answers.",
    "answers": "Write the answers of a model to the rows of a file, for axformer certify --answers.",
    "label": "Label the changed answers of a result, until its certificate stands or is out of reach.",
    "certify": "Test with 95 % confidence whether a model has lost less than some points of accuracy; exit code 1 if not.",
    "verify": "Check who has made a result, from what, and that no file of it has changed; exit code 1 if not.",
    "export": "Write more forms of a finished result, without its checkpoint.",
    "push": "Put a result into a repository of the model hub, in one commit, and print its address.",
    "log": "Tell an experiment tracker of a result: settings, figures along the path, advice, certificate, card and report.",
    "knobs": "List the knobs, or explain one.",
    "orders": "Prune a model once in each order of its top, middle and bottom layers, and compare the results.",
}
"""The commands that work on this machine, in the order in which they are shown, with the beginnings of their help."""
_SERVICE = {
    "login": "Store the address of the service and a key, readable by you alone.",
    "upload": "Upload a file or a checkpoint's directory, and print its reference for jobs.",
    "submit": "Queue a job for a checkpoint and its data, and print its id.",
    "submit-analysis": "Queue an analysis of a model, and print its id.",
    "watch": "Follow a job to its end; exit code 0 only if it succeeds.",
    "jobs": "List your team's jobs, the newest first.",
    "show": "Show a job: its inputs, its state and its result.",
    "queue": "Show your team's unfinished jobs, when they should start and end, and the number of workers.",
    "workers": "Show the living workers: device, memory, which of your team's jobs each runs, and for how long.",
    "trace": "Print or write the trials of a job so far.",
    "download": "Download a finished job's files, each verified by its SHA-256.",
    "path": "Show what speed costs along the path of a finished run, and which of its models to take for a wish.",
    "cancel": "Cancel a job: a queued one at once, a running one at its next trial.",
    "pause": "Pause a job at its next trial; it keeps its trace.",
    "resume": "Resume a paused job where its trace ends.",
    "retry": "Run a failed or cancelled job again from the start.",
    "deliver": "Put a job's files into a bucket or a repository of the model hub.",
    "compare": "Compare jobs and local results: the knobs in which they differ, and the result of each.",
    "keys": "List, create, rotate and revoke your team's keys; for admins.",
}
"""The same for the commands that need the service."""
_EXAMPLES: dict[str, tuple[str, ...]] = {
    "prune": (
        "axformer prune my-model --data dev.jsonl --test test.jsonl --output pruned",
        "axformer prune my-model --data dev.csv --columns text=review,label=stars --output fast --goal speedup=2 "
        "--forms compact,onnx_int8",
    ),
    "slim": ("axformer slim my-model rows.jsonl", "axformer slim my-model rows.jsonl --within-points 1"),
    "int8": ("axformer int8 my-model", "axformer int8 my-model --data texts.jsonl --output served"),
    "trim": (
        "axformer trim my-model --scripts Latin,Greek --output smaller",
        "axformer trim my-model --data traffic.jsonl --tokens 16000 --output smaller",
    ),
    "apply": ("axformer apply pruned/plan.json my-model --data dev.jsonl --output again --forms compact,onnx",),
    "analyze": ("axformer analyze my-model --data dev.jsonl --train train.jsonl --output analysis",),
    "split": ("axformer split all.jsonl --output parts --share 0.15",),
    "diff": ("axformer diff pruned fast",),
    "bench": ("axformer bench fast --checkpoint my-model --data dev.jsonl",),
    "answers": ("axformer answers my-model --data rows.jsonl --output old.jsonl",),
    "label": ("axformer label fast",),
    "certify": (
        "axformer certify fast --labels labelled.csv",
        "axformer certify --answers old.jsonl new.jsonl --within-points 1",
    ),
    "export": ("axformer export fast --data dev.jsonl --output fast-onnx --forms onnx_int8",),
    "verify": ("axformer verify result --key https://axformer.example.org", "axformer verify result --key service.pem"),
    "push": ("axformer push fast hf://acme/reviews-small",),
    "log": ("axformer log fast --mlflow --uri http://127.0.0.1:5000", "axformer log fast --wandb"),
    "knobs": ("axformer knobs", "axformer knobs target_speedup"),
    "orders": ("axformer orders my-model --data dev.jsonl --preset paper --output orders",),
    "login": ("axformer login http://127.0.0.1:8000",),
    "upload": ("axformer upload my-model",),
    "submit": (
        "JOB=$(axformer submit my-model --data dev.jsonl --test test.jsonl --goal within-points=1)",
        "axformer submit hf://acme/reviews --data s3://acme/dev.jsonl --goal speedup=2 --forms compact,onnx_int8 --watch",
    ),
    "submit-analysis": ("JOB=$(axformer submit-analysis my-model --data dev.jsonl --train train.jsonl)",),
    "watch": ("axformer watch $JOB",),
    "jobs": ("axformer jobs --state running",),
    "show": ("axformer show $JOB",),
    "queue": ("axformer queue",),
    "workers": ("axformer workers",),
    "trace": ("axformer trace $JOB --format csv",),
    "download": ("axformer download $JOB --output result", "axformer download $JOB --name report.html"),
    "path": ("axformer path $JOB", "axformer path $JOB --export 12"),
    "cancel": ("axformer cancel $JOB",),
    "pause": ("axformer pause $JOB",),
    "resume": ("axformer resume $JOB",),
    "retry": ("axformer retry $JOB",),
    "deliver": ("axformer deliver $JOB hf://acme/reviews-small",),
    "compare": ("axformer compare $JOB $OTHER --plot results.svg", "axformer compare --label sweep=margins"),
    "keys": ("axformer keys list", "axformer keys create laptop --scope write"),
}
"""The end of each command's help. A test parses them."""
_MODULES = {
    **dict.fromkeys(("cancel", "pause", "resume", "retry", "deliver"), "steer"),
    **dict.fromkeys(("apply", "export"), "forms"),
    **dict.fromkeys(("certify", "answers"), "certify"),
    **dict.fromkeys(("push", "log"), "sharing"),
    **{
        "queue": "jobs",
        "workers": "jobs",
        "trace": "download",
        "login": "keys",
        "submit-analysis": "submit",
        "upload": "submit",
    },
}
"""The modules that are not named like their command."""


class _Listed(LazyGroup):
    """All commands."""

    listed: ClassVar[Mapping[str, Command]] = {
        name: Command(panel, summary, _EXAMPLES[name], _MODULES.get(name, name.replace("-", "_")))
        for panel, commands in (("On this machine", _HERE), ("On the service", _SERVICE))
        for name, summary in commands.items()
    }
    of_a_checkpoint = "int8", "slim"
    gone: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("grid", "group", "groups"),
            "queue each run by axformer submit --label sweep=NAME, and see them by axformer compare --label sweep=NAME",
        ),
        "disagree": "axformer answers writes the answers of a model; of two, axformer certify --answers OLD NEW --needed FILE "
        "writes the rows that need a label",
        "certify --data": "axformer answers writes the answers of each model; of two, axformer certify --answers OLD NEW "
        "tests the second",
        "plot": "plan.svg and path.svg lie in each result, and the chart of its losses in report.html",
        "families": "docs/families.md has the families and their tasks; a checkpoint of another is refused with a list of them",
        "features": "axformer analyze --report features says how few layers and dimensions a linear classifier needs",
    }


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
