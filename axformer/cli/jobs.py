"""``axformer jobs``: the team's jobs."""

from itertools import islice
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from axformer.cli.options import labels_of
from axformer.cli.remote import JsonOption, output, print_json, service
from axformer.cli.words import age, change_of_loss, progress, state
from axformer.client import Job


def jobs(
    wanted: Annotated[list[str] | None, typer.Option("--state", help="Only in this state; may be repeated.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only with this label: key=value; may be repeated.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most jobs to list.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """List your team's jobs, the newest first."""
    with service() as client:
        found = list(islice(client.jobs(states=wanted or [], labels=labels_of(label)), limit))
    if as_json:
        print_json(found)
    elif not found:
        output().print(
            "There are no such jobs." if wanted or label else "There are no jobs yet; axformer submit makes one."
        )
    else:
        output().print(_table(found))


def _table(found: list[Job]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("job", no_wrap=True)
    table.add_column("name", overflow="ellipsis", no_wrap=True, max_width=32)
    table.add_column("state", no_wrap=True)
    table.add_column("trials", justify="right", no_wrap=True)
    table.add_column("loss", no_wrap=True)
    table.add_column("posted", justify="right", no_wrap=True)
    for job in found:
        table.add_row(
            job.id, job.name, state(job.state), progress(job.progress), change_of_loss(job), age(job.created_at)
        )
    return table
