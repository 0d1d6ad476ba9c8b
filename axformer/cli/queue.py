"""``axformer queue``: where the team's unfinished jobs stand."""

from rich.table import Table

from axformer.cli.display import count
from axformer.cli.remote import JsonOption, output, print_json, service
from axformer.cli.words import NOTHING, list_of_jobs, span, state
from axformer.client import Queue


def queue(as_json: JsonOption = False) -> None:
    """Show your team's unfinished jobs, when they are likely to start and end, and how many workers there are."""
    with service() as client:
        found = client.queue()
    if as_json:
        print_json(found)
        return
    console = output()
    if found.data:
        console.print(_table(found))
    else:
        console.print("No job of your team waits or runs.")
    workers = f"{count(found.workers_alive, 'worker')}, {found.workers_busy} busy"
    console.print(f"{workers}; {count(found.queued_of_all_teams, 'job')} of all teams waiting", soft_wrap=True)


def _table(found: Queue) -> Table:
    table = list_of_jobs(("place", 5), ("starts in", 6), ("ends in", 6))
    for one in found.data:
        position = NOTHING if one.position is None else str(one.position)
        times = (span(one.starts_in_seconds), span(one.ends_in_seconds))
        table.add_row(one.id, one.name, state(one.state), position, *times)
    return table
