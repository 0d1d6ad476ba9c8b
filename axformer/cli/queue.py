"""``axformer queue``: where the team's unfinished jobs stand."""

from rich import box
from rich.table import Table

from axformer.cli.display import count, duration
from axformer.cli.remote import JsonOption, output, print_json, service
from axformer.cli.words import NOTHING, state
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
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("place", justify="right")
    table.add_column("job", no_wrap=True)
    table.add_column("name", overflow="ellipsis", no_wrap=True, max_width=32)
    table.add_column("state", no_wrap=True)
    table.add_column("starts in", justify="right", no_wrap=True)
    table.add_column("ends in", justify="right", no_wrap=True)
    for one in found.data:
        position = NOTHING if one.position is None else str(one.position)
        table.add_row(
            position, one.id, one.name, state(one.state), _time(one.starts_in_seconds), _time(one.ends_in_seconds)
        )
    return table


def _time(seconds: float | None) -> str:
    return NOTHING if seconds is None else duration(seconds)
