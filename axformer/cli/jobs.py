"""``axformer jobs`` and ``axformer queue``: the team's jobs, and the places of the unfinished ones."""

from itertools import islice
from typing import Annotated

import typer
from rich.table import Table

from axformer.cli.display import count
from axformer.cli.options import labels_of
from axformer.cli.remote import LISTED_MOST, JsonOption, output, print_json, service
from axformer.cli.words import NOTHING, age, list_of_jobs, result, span, state
from axformer.client import Job, Queue


def jobs(
    wanted: Annotated[list[str] | None, typer.Option("--state", help="Only in this state; may be repeated.")] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help="Only of this kind: pass, export or analysis; may be repeated.")
    ] = None,
    outcome: Annotated[
        str | None, typer.Option(help="Only succeeded jobs of this outcome: done, target_missed or not_usable.")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only with this label: key=value; may be repeated.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=LISTED_MOST, help="Maximum number of jobs to list.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """List your team's jobs, the newest first.

    The result of a finished job is the change of its metric on data that did not decide, or of the loss if there is no such
    data. An unfinished job shows its trials and the loss so far.
    """
    with service() as client:
        asked = client.jobs(states=wanted or [], kinds=kind or [], labels=labels_of(label), outcome=outcome)
        found = list(islice(asked, limit))
    if as_json:
        print_json(found)
    elif not found:
        output().print(
            "There are no such jobs."
            if wanted or kind or label or outcome
            else "There are no jobs yet; axformer submit makes one."
        )
    else:
        output().print(_table(found))


def _table(found: list[Job]) -> Table:
    has_kinds = any(job.kind != "pass" for job in found)  # most teams have passes alone, and the table is wide enough
    table = list_of_jobs(*([("kind", 8)] if has_kinds else []), ("result", 16), ("age", 6))
    for job in found:
        kind = [job.kind] if has_kinds else []
        table.add_row(job.id, job.name, state(job.state, job.outcome), *kind, result(job), age(job.created_at))
    return table


def queue(as_json: JsonOption = False) -> None:
    """Show your team's unfinished jobs, when they should start and end, and the number of workers."""
    with service() as client:
        line = client.queue()
    if as_json:
        print_json(line)
        return
    console = output()
    if line.data:
        console.print(_places(line))
    else:
        console.print("Your team has no waiting or running jobs.")
    workers = f"{count(line.workers_alive, 'worker')}, {line.workers_busy} busy"
    console.print(f"{workers}; {count(line.queued_of_all_teams, 'job')} of all teams waiting", soft_wrap=True)


def _places(line: Queue) -> Table:
    table = list_of_jobs(("place", 5), ("starts in", 6), ("ends in", 6))
    for job in line.data:
        position = NOTHING if job.position is None else str(job.position)
        times = (span(job.starts_in_seconds), span(job.ends_in_seconds))
        table.add_row(job.id, job.name, state(job.state), position, *times)
    return table
