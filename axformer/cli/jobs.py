"""``axformer jobs``: the team's jobs."""

from itertools import islice
from typing import Annotated

import typer
from rich.table import Table

from axformer.cli.options import labels_of
from axformer.cli.remote import LISTED_MOST, JsonOption, output, print_json, service
from axformer.cli.words import age, list_of_jobs, result, state
from axformer.client import Job


def jobs(
    wanted: Annotated[list[str] | None, typer.Option("--state", help="Only in this state; may be repeated.")] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help="Only of this kind: pass, export or analysis; may be repeated.")
    ] = None,
    outcome: Annotated[
        str | None, typer.Option(help="Only succeeded jobs of this outcome: done or target_missed.")
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
