"""``axformer slim``: a model as it is in ONNX int8, then smaller ones in it; ``axformer CHECKPOINT DATA`` is short for it."""

import json
from pathlib import Path
from typing import Annotated

import typer

from axformer.cli import options
from axformer.cli.characters import Terminal
from axformer.cli.deploying import show_path
from axformer.cli.failing import failing
from axformer.cli.inputs import ColumnsOption, columns_of
from axformer.cli.int8 import show_as_it_is
from axformer.cli.libraries import ready
from axformer.cli.prune import answer, carry_out
from axformer.config.goals import GoalName
from axformer.data.columns import ANSWERS, DataSource
from axformer.wire.metrics import EMBEDDING

BUDGETS = (0.8, 0.65, 0.5, 0.35)
"""The models of the path: shares of the encoder's operations."""


def slim(
    checkpoint: options.CheckpointArgument,
    data: Annotated[
        str,
        typer.Argument(help="Rows of the kind that the model will see, with or without labels.", metavar="DATA"),
    ],
    columns: ColumnsOption = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Directory for the results, as-it-is/ and smaller/; by default CHECKPOINT-slim beside it."),
    ] = None,
    within_points: Annotated[
        float | None,
        typer.Option(min=0, help="The points that may be lost; by default as few as the rows are likely to certify."),
    ] = None,
    accept_poor_model: options.AcceptPoorOption = False,
    as_json: options.ReportJsonOption = False,
) -> None:
    """Write a model as it is in ONNX int8, then the smallest of four smaller ones that the rows can vouch for."""
    with failing():
        place = output or options.beside(checkpoint, "slim")
        ready("cpu", place)
        from axformer.data.reading import read_rows
        from axformer.int8 import make_int8
        from axformer.scores.task_tests import takes_unlabelled

        console, source = Terminal(stderr=as_json), DataSource(data, columns_of(columns))
        with console.status("Exporting, checking and timing the model as it is"):
            made = make_int8(checkpoint, place / "as-it-is", source)
        show_as_it_is(console, made, place / "as-it-is")
        rows = read_rows(source.path, source.columns)
        task, given = made.checkpoint.task, any(map(rows.has, ANSWERS))
        has_labels = not takes_unlabelled(task, made.checkpoint.model.config) or (given and task.name != EMBEDDING)
        goal = GoalName.WITHIN_POINTS if within_points is None else f"{GoalName.WITHIN_POINTS}={within_points:g}"
        asked = options.RunOptions(
            checkpoint=checkpoint,
            data=data if has_labels else None,
            unlabelled=None if has_labels else data,
            goal=str(goal),
            set_=[f"budgets={list(BUDGETS)}"],
            columns=columns,
            accept_poor_model=accept_poor_model,
        )
        settled = asked.run().settled()
        report = carry_out(console, settled, place / "smaller", "cpu", before=made.written)
    if as_json:
        print(json.dumps(report, indent=1))  # noqa: T201 - this is what was asked for
        return
    show_path(console, report)
    answer(console, report, place / "smaller")
