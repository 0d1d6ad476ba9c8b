"""``axformer prune``: run a pass over a checkpoint and write the smaller model."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from axformer.cli import options
from axformer.cli.deploying import (
    exit_if_missed,
    show_beyond,
    show_certificate,
    show_deployables,
    show_loading,
    show_target,
)
from axformer.cli.failing import failing
from axformer.cli.importing import importing
from axformer.wire.run import SettledRun

if TYPE_CHECKING:
    from axformer.run import PruningRun


@options.takes_run
def prune(
    asked: options.RunOptions,
    output: Annotated[Path, typer.Option(help="Directory for the result; it must not exist, or be empty.")],
    device: options.DeviceOption = "auto",
    as_json: options.ReportJsonOption = False,
) -> None:
    """Prune a fine-tuned model, and write the smaller, verified model."""
    with failing():
        settled = asked.run().settled()
        console = Console(highlight=False, markup=False, stderr=as_json)

        with importing():
            from axformer.artifact import check_target
            from axformer.cli.quiet import silence_libraries
            from axformer.devices import resolve_device

        silence_libraries()
        check_target(output)
        run = _open(console, settled, output, device=resolve_device(device))
        report = _carry_out(console, run, output, settled.forms)
    if as_json:
        print(json.dumps(report, indent=1))  # noqa: T201 - this is what was asked for
    else:
        _tell(console, report, output)
    exit_if_missed(report)


def _open(console: Console, settled: SettledRun, output: Path, *, device: str) -> "PruningRun":
    """Load the inputs, and train a base model's new head."""
    from axformer.cli.display import status_of
    from axformer.run import PruningRun
    from axformer.surroundings import Surroundings

    with console.status("Loading the checkpoint and the data") as status:
        around = Surroundings(options.state_of(output), on_step=lambda step: status.update(status_of(step)))
        return PruningRun.open(settled, device=device, surroundings=around)


def _carry_out(console: Console, run: "PruningRun", output: Path, forms: Sequence[str]) -> dict[str, Any]:
    """Run the pass with a display, publish, and return the report."""
    from axformer.cli.display import display_for, measured_by, status_of
    from axformer.surroundings import Surroundings

    for note in run.notes:
        console.print(f"note: {note}", soft_wrap=True)
    with console.status("Looking at the untouched model"):
        look = run.look()
    console.print(f"validation: {look.sentence}", soft_wrap=True)
    if look.note is not None:
        console.print(f"note: {look.note}", soft_wrap=True)
    state = options.state_of(output)
    with display_for(console, measured_by(run.dimensions, run.config)) as display:
        for trial in run.trials(surroundings=Surroundings(state, display.tell)):
            display.show(trial)
        display.end()
    if run.closing_note is not None:
        console.print(f"note: {run.closing_note}", soft_wrap=True)
    with console.status("Training the model") as status:  # there may be nothing to train on
        run.repair(Surroundings(state, on_step=lambda step: status.update(status_of(step))))
    with console.status("Cutting, measuring and checking the model") as status:
        report = run.publish(output, forms, on_step=lambda step: status.update(status_of(step)))
    shutil.rmtree(state, ignore_errors=True)
    return report


def _tell(console: Console, report: dict[str, Any], output: Path) -> None:
    from axformer.cli.display import closing_table, finding_line, fit_line

    show_target(console, report)
    show_deployables(console, report)
    show_beyond(console, report, str(output))
    console.print(closing_table(report))
    show_certificate(console, report)
    console.print(finding_line(report["finding"]), soft_wrap=True)
    if report["refit"] is not None:
        console.print(fit_line(report["refit"]), soft_wrap=True)
    for form in report["forms"]:
        if not form["made"]:
            console.print(f"note: no form '{form['name']}': {form['reason']}", soft_wrap=True)
    directories = [f"{form['directory']}/" for form in report["forms"] if form["made"]]
    if report["head"] is not None:
        directories.append(report["head"]["directory"])
    written = ", ".join(
        [
            *directories,
            "plan.json",
            "trace.jsonl",
            "report.json",
            "report.html",
            "run.json",
            "README.md",
            "plan.svg",
            "path.svg",
        ]
    )
    console.print(f"Wrote {output}/ ({written})", soft_wrap=True)
    show_loading(console, report, output)
