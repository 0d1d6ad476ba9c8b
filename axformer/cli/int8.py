"""``axformer int8``: ONNX and ONNX int8 of a model as it is; ``axformer CHECKPOINT`` is short for it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from axformer.cli.characters import Terminal
from axformer.cli.failing import failing
from axformer.cli.inputs import ColumnsOption, columns_of
from axformer.cli.libraries import ready
from axformer.data.columns import DataSource
from axformer.forms.kinds import KINDS
from axformer.reporting.deployable import TITLES, WORTH_IT

if TYPE_CHECKING:
    from axformer.int8 import AsItIs, Timed


def int8(
    checkpoint: Annotated[str, typer.Argument(help="Directory of a fine-tuned model, or hf://organisation/name.")],
    data: Annotated[
        str | None,
        typer.Option(
            help="Rows of the kind that the model will see, without labels; a built-in sample if none are given."
        ),
    ] = None,
    columns: ColumnsOption = None,
    output: Annotated[
        Path | None, typer.Option(help="Directory for hub/; by default CHECKPOINT-int8, in the directory you are in.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Write a model as it is in ONNX and ONNX int8, checked and timed: no data, no labels, nothing removed."""
    with failing():
        source = None if data is None else DataSource(data, columns_of(columns))
        place = output or Path(f"{Path(checkpoint.rstrip('/')).name}-int8")
        ready("cpu")
        from axformer.int8 import make_int8

        with Terminal(stderr=True).status("Exporting, checking and timing"):
            made = make_int8(checkpoint, place, source)
    if as_json:
        print(json.dumps(_content(made, place), indent=1))  # noqa: T201 - this is what was asked for
        return
    console = Terminal()
    show_as_it_is(console, made, place)
    console.print(
        "Nothing is claimed about accuracy. To have it certified, and the model smaller:",
        f"  axformer {checkpoint} ROWS",
        sep="\n",
        soft_wrap=True,
    )


def show_as_it_is(console: Terminal, made: "AsItIs", place: Path) -> None:
    """Print what became of a model as it is, and what was written into a directory."""
    console.print(_table(made))
    console.print(*_told(made, place), sep="\n", soft_wrap=True)


def _content(made: "AsItIs", place: Path) -> dict[str, Any]:
    forms = [
        {
            "name": one.form.name,
            "file": f"{place}/{KINDS[one.form.name].place}",
            "bytes": one.form.bytes,
            "milliseconds": one.milliseconds,
            "times": one.times,
            "times_interval": one.times_interval,
            "same_answers": one.same,
            "cosine": one.cosine,
        }
        for one in made.forms
    ]
    base = {"bytes": made.checkpoint.bytes, "milliseconds": made.milliseconds}
    return {"rows": made.rows, "is_sample": made.is_sample, "base": base, "forms": forms}


def _table(made: "AsItIs") -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for head in ("", "MB", "one input, ms", "times as fast", "same answers"):
        table.add_column(head, justify="right" if head else "left", no_wrap=True)
    table.add_row("PyTorch, as it is", f"{made.checkpoint.bytes / 1e6:.1f}", f"{made.milliseconds:.2f}", "", "")
    for one in made.forms:
        low, high = one.times_interval
        same = "" if one.same is None else f"{one.same:.1%}"
        times = f"{one.times:.1f} [{low:.1f}, {high:.1f}]"
        table.add_row(TITLES[one.form.name], f"{one.form.bytes / 1e6:.1f}", f"{one.milliseconds:.2f}", times, same)
    return table


def _worth(one: "Timed", rows: int) -> str:
    """How fast it is shown to be, and how many answers changed; whether to deploy it nobody knows without labels."""
    is_faster = one.times_interval[0] > WORTH_IT
    speed = f"{one.times:.1f} times as fast with one input" if is_faster else "not shown to be faster here"
    if one.same is None:
        return speed
    changed = f"{rows - round(one.same * rows):,} of {rows:,}"
    if one.cosine is not None:
        return (
            f"{speed}, vectors of a mean cosine of {one.cosine:.4f} to before, {changed} texts find another one nearest"
        )
    return f"{speed}, {changed} answers changed"


def _told(made: "AsItIs", place: Path) -> list[str]:
    rows = f"{made.rows} built-in sentences" if made.is_sample else f"{made.rows:,} rows"
    failed = [f"not made: {form.name}: {form.reason}" for form in made.not_made]
    return [
        *failed,
        *(f"Wrote {place}/{KINDS[one.form.name].place}: {_worth(one, made.rows)}." for one in made.forms),
        f"Answers were compared on {rows}.",
    ]
