"""Run ``axformer prune`` over the checkpoints whose results are reported, one pass after another.

    python -m benchmarks.passes --checkpoints DIR --sets SETS --output RESULTS [--preset paper --preset published]

leaves ``RESULTS/PRESET/NAME``, the pass's own output, and ``RESULTS/PRESET/NAME.log``. Finished passes are kept, and a
failed one stops no other, so the program may be stopped and started again. ``benchmarks.results_table`` makes the table.
"""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.checkpoints import Checkpoint, chosen
from benchmarks.commands import run_logged

_PRUNE = ["-c", "from axformer.cli.main import app; app(prog_name='axformer')", "prune"]
_REPORT = "report.json"


def pass_command(checkpoint: Checkpoint, home: Path, sets: Path, output: Path, preset: str) -> list[str]:
    """The arguments of this Python that run one pass.

    Args:
        checkpoint: what is pruned.
        home: its directory.
        sets: directory of the prepared sets.
        output: where the result goes.
        preset: named set of knobs; inputs are cut where they were in training, and ``order=auto`` is told the task.
    """
    task_name = [] if checkpoint.task_name is None else [f"--set=task_name={checkpoint.task_name}"]
    return [
        *[*_PRUNE, str(home)],
        f"--data={checkpoint.rows(sets, 'validation')}",
        f"--test={checkpoint.rows(sets, 'test')}",
        f"--output={output}",
        f"--preset={preset}",
        f"--set=max_length={checkpoint.max_length}",
        *task_name,
    ]


def run_pass(command: list[str], home: Path, output: Path) -> str:
    """Run a pass if its checkpoint stands and its result does not; gives what became of it, for people."""
    if (output / _REPORT).is_file():
        return "is there"
    if not home.is_dir():
        return f"waits, there is no checkpoint {home}"
    log = output.with_name(f"{output.name}.log")
    if run_logged(command, log):
        return "done"
    return f"FAILED: {log.read_text(encoding='utf-8').strip().splitlines()[-1]}"


def main(
    checkpoints: Annotated[Path, typer.Option(help="directory of the checkpoints")],
    sets: Annotated[Path, typer.Option(help="directory of the prepared sets")],
    output: Annotated[Path, typer.Option(help="directory for the results")],
    preset: Annotated[list[str] | None, typer.Option(help="a preset; may be repeated, 'paper' where none is")] = None,
    only: Annotated[list[str] | None, typer.Option(help="a checkpoint to prune; may be repeated")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="a knob=value for every pass")] = None,
    device: str = "cpu",
    forms: Annotated[str, typer.Option(help="forms of each result, with commas between")] = "compact",
) -> None:
    """Run the passes that are not there yet."""
    failed = False
    for name in preset or ["paper"]:
        for checkpoint in chosen(only):
            home, result = checkpoints / checkpoint.name, output / name / checkpoint.name
            command = pass_command(checkpoint, home, sets, result, name)
            command += [f"--device={device}", f"--forms={forms}", *(f"--set={knob}" for knob in set_ or [])]
            outcome = run_pass(command, home, result)
            failed |= outcome.startswith("FAILED")
            print(f"{name} {checkpoint.name}: {outcome}", flush=True)
    if failed:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
