"""``axformer prune``: run a pass over a checkpoint and write the smaller model."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from axformer.cli import options
from axformer.cli.characters import Terminal
from axformer.cli.failing import failing
from axformer.cli.inputs import DeviceOption
from axformer.cli.libraries import ready
from axformer.wire.run import SettledRun

if TYPE_CHECKING:
    from axformer.forms.form import Form, NotMade

_FILES = ("plan.json", "trace.jsonl", "report.json", "report.html", "run.json", "README.md", "plan.svg", "path.svg")
"""The files of every result."""


@options.takes_run
def prune(
    asked: options.RunOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Directory for the result; it must not exist, or be empty. By default CHECKPOINT-pruned beside it, "
            "or with a number behind it.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the answer alone, and where the result lies.")
    ] = False,
    device: DeviceOption = "auto",
    as_json: options.ReportJsonOption = False,
    require: options.RequireOption = None,
) -> None:
    """Prune a fine-tuned model, and write the smaller, verified model."""
    from axformer.cli.deploying import Required, exit_if_missed, exit_if_unmet

    with failing():
        settled, required = asked.run().settled(), Required.parse(require)
        output = output or options.beside(asked.checkpoint)
        console = Terminal(stderr=as_json, quiet=quiet)
        report = carry_out(console, settled, output, ready(device, output))
    if as_json:
        print(json.dumps(report, indent=1))  # noqa: T201 - this is what was asked for
    elif quiet:
        answer(Terminal(), report, output)
    else:
        _tell(console, report, output)
    exit_if_unmet(report, required)
    exit_if_missed(report, settled.run.forms)


def carry_out(
    console: Console, settled: SettledRun, output: Path, device: str, before: "Sequence[Form | NotMade] | None" = None
) -> dict[str, Any]:
    """Load the inputs, run the pass with a display, publish, and return the report.

    Args:
        before: the untouched model in ONNX; None if that is not made yet.
    """
    from axformer.cli.display import display_for, measured_by, showing
    from axformer.run import PruningRun
    from axformer.surroundings import Surroundings

    state = options.state_of(output)
    with showing(
        console, "Loading the checkpoint and the data", state
    ) as around:  # a base model's head is trained here
        run = PruningRun.open(settled, device=device, surroundings=around)
    run.before = before
    for note in run.notes:
        console.print(f"note: {note}", soft_wrap=True)
    with console.status("Looking at the untouched model"):
        look = run.look()
    console.print(f"validation: {look.sentence}", soft_wrap=True)
    if look.note is not None:
        console.print(f"note: {look.note}", soft_wrap=True)
    with display_for(console, measured_by(run.dimensions, run.config)) as display:
        for trial in run.trials(surroundings=Surroundings(state, display.tell)):
            display.show(trial)
        display.end()
    if run.closing_note is not None:
        console.print(f"note: {run.closing_note}", soft_wrap=True)
    with showing(console, "Training the model", state) as around:  # there may be nothing to train on
        run.repair(around)
    with showing(console, "Cutting, measuring and checking the model") as around:
        report = run.publish(output, settled.forms, around.on_step)
    shutil.rmtree(state, ignore_errors=True)
    return report


def answer(console: Console, report: dict[str, Any], output: Path) -> None:
    """Print the answer alone, and where the result lies."""
    from axformer.cli.deploying import show_certificate, show_target
    from axformer.cli.label import show_labelling
    from axformer.reporting.deploy_table import deployables

    found = deployables(report)
    show_target(console, report)
    show_certificate(console, report)
    show_labelling(console, output)
    console.print(*[] if found is None else [found.sentence], f"In {output}/", sep="\n", soft_wrap=True)


def _tell(console: Console, report: dict[str, Any], output: Path) -> None:
    """Print the answer, what was measured, and what was written."""
    from axformer.cli.deploying import (
        show_beyond,
        show_certificate,
        show_deployables,
        show_loading,
        show_path,
        show_target,
    )
    from axformer.cli.display import closing_table, finding_line, fit_line
    from axformer.cli.label import show_labelling

    show_target(console, report)
    show_path(console, report)
    show_deployables(console, report)
    show_beyond(console, report, str(output))
    console.print(closing_table(report))
    show_certificate(console, report)
    show_labelling(console, output)
    console.print(finding_line(report["finding"]), soft_wrap=True)
    if report["refit"] is not None:
        console.print(fit_line(report["refit"]), soft_wrap=True)
    for form in report["forms"]:
        if not form["made"]:
            console.print(f"note: no form '{form['name']}': {form['reason']}", soft_wrap=True)
    directories = [f"{form['directory']}/" for form in report["forms"] if form["made"]]
    if report["head"] is not None:
        directories.append(report["head"]["directory"])
    written = ", ".join((*directories, *_FILES))
    console.print(f"Wrote {output}/ ({written})", soft_wrap=True)
    show_loading(console, report, output)
