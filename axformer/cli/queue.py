"""``axformer queue``: the team's unfinished jobs and their places."""

from rich.table import Table

from axformer.cli.display import count
from axformer.cli.remote import JsonOption, output, print_json, service
from axformer.cli.words import NOTHING, list_of_jobs, span, state
from axformer.client import Queue


def queue(as_json: JsonOption = False) -> None:
    """Show your team's unfinished jobs, when they should start and end, and the number of workers."""
    with service() as client:
        queue = client.queue()
    if as_json:
        print_json(queue)
        return
    console = output()
    if queue.data:
        console.print(_table(queue))
    else:
        console.print("Your team has no waiting or running jobs.")
    workers = f"{count(queue.workers_alive, 'worker')}, {queue.workers_busy} busy"
    console.print(f"{workers}; {count(queue.queued_of_all_teams, 'job')} of all teams waiting", soft_wrap=True)


def _table(queue: Queue) -> Table:
    table = list_of_jobs(("place", 5), ("starts in", 6), ("ends in", 6))
    for job in queue.data:
        position = NOTHING if job.position is None else str(job.position)
        times = (span(job.starts_in_seconds), span(job.ends_in_seconds))
        table.add_row(job.id, job.name, state(job.state), position, *times)
    return table
