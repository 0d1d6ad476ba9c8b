"""``axformer jobs`` and ``axformer queue``: the team's jobs, and the places of the unfinished ones."""

from itertools import islice
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from axformer.cli.display import count
from axformer.cli.options import labels_of
from axformer.cli.remote import LISTED_MOST, JsonOption, output, print_json, service
from axformer.cli.words import NOTHING, age, list_of_jobs, result, span, state
from axformer.client import Job, Queue
from axformer.wire.queue import QueuedJobRead


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
        console = output()
        console.print(_table(console.width, found))


def _table(width: int, found: list[Job]) -> Table:
    has_kinds = any(job.kind != "pass" for job in found)  # most teams have passes alone, and the table is wide enough
    rows = ((job.id, job.name, _result_of(job, [job.kind] * has_kinds)) for job in found)
    return list_of_jobs(width, [*["kind"] * has_kinds, "result", "age"], rows)


def _result_of(job: Job, kind: list[str]) -> list[str | Text]:
    return [state(job.state, job.outcome), *kind, result(job), age(job.created_at)]


def queue(as_json: JsonOption = False) -> None:
    """Show your team's unfinished jobs, when they should start and end, and the number of workers."""
    with service() as client:
        line = client.queue()
    if as_json:
        print_json(line)
        return
    console = output()
    if line.data:
        console.print(_places(console.width, line))
    else:
        console.print("Your team has no waiting or running jobs.")
    workers = f"{count(line.workers_alive, 'worker')}, {line.workers_busy} busy"
    console.print(f"{workers}; {count(line.queued_of_all_teams, 'job')} of all teams waiting", soft_wrap=True)


def workers(as_json: JsonOption = False) -> None:
    """Show the living workers: device, memory, which of your team's jobs each runs, and for how long."""
    with service() as client:
        kinds = client.queue().workers
    if as_json:
        print_json(kinds)
        return
    table = Table("worker", "device", "memory", "runs", "for", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for kind in kinds:
        for one in kind.each:
            runs = one.job_name or ("a job of another team" if one.is_busy else NOTHING)
            memory = NOTHING if one.memory is None else f"{one.memory / 1e9:.1f} GB"
            since = NOTHING if one.since is None else age(one.since)
            table.add_row(Text(one.name or NOTHING), kind.device, memory, Text(runs), since)
    output().print(table if table.row_count else "No worker is alive; jobs wait until the operator starts one.")


def _places(width: int, line: Queue) -> Table:
    rows = ((job.id, job.name, _place_of(job)) for job in line.data)
    return list_of_jobs(width, ("place", "starts in", "ends in"), rows)


def _place_of(job: QueuedJobRead) -> list[str | Text]:
    position = NOTHING if job.position is None else str(job.position)
    return [state(job.state), position, span(job.starts_in_seconds), span(job.ends_in_seconds)]
