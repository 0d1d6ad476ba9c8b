"""``axformer group`` and ``groups``: a grid of jobs, and the table of its results."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from axformer.cli.failing import failing
from axformer.cli.remote import LISTED_MOST, JsonOption, notes, output, print_json, service
from axformer.cli.watch import EXIT_INTERRUPTED
from axformer.cli.words import ID_WIDTH, NAME_WIDTH, NOTHING, age, knobs, standing
from axformer.client import Client, Group
from axformer.client.answers import GroupRow
from axformer.reporting.side_by_side import side_by_side_in_group
from axformer.wire.spread import Spread

_LOSS = "loss"
_DATA = {"test": "change of held-out", "confirming": "change of confirming", "validation": "change of validation"}
"""The data that figures are shown for, the least biased first."""
_FIGURE_WIDTH = 38
_JUDGED = (
    ("gain", "better"),
    ("no_reliable_gain", "no difference"),
    ("within_limit", "within limit"),
    ("at_a_cost", "at a cost"),
    ("loss", "worse"),
    ("not_measured", "not measured"),
)


def group(
    group: Annotated[str, typer.Argument(help="Id of a group, as printed by grid and groups.", metavar="GROUP")],
    watch: Annotated[bool, typer.Option("--watch", help="Wait until the group has ended.")] = False,
    pictures: Annotated[
        Path | None,
        typer.Option(
            "--plot", help="Write a picture of each set into this directory, as SVG: what each setting costs."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the results of a group of jobs so far: means over checkpoints and seeds, with spreads and intervals."""
    with service() as client:
        if watch:
            found = follow_group(client, group, as_json=as_json)
        else:
            found = client.group(group)
            _tell(found, as_json=as_json)
    if pictures is not None:
        with failing():
            _draw(found, pictures)


def groups(
    limit: Annotated[int, typer.Option(min=1, max=LISTED_MOST, help="Maximum number of groups to list.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """List your team's groups of jobs, the newest first."""
    with service() as client:
        listed = list(islice(client.groups(), limit))
    if as_json:
        print_json(listed)
    elif not listed:
        output().print("There are no groups yet; axformer grid makes one.")
    else:
        output().print(_list(listed))


def follow_group(client: Client, group_id: str, *, as_json: bool) -> Group:
    """Wait until all jobs of a group have ended, then show and return it. Ctrl-C leaves them running.

    Raises:
        Exit: someone pressed Ctrl-C.
    """
    try:
        with notes().status("Waiting for the first job") as status:
            group = client.wait_for_group(group_id, on_progress=lambda group: status.update(standing(group)))
    except KeyboardInterrupt:
        notes().print(f"\nNo longer watching; the jobs go on. Look again with: axformer group {group_id}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    _tell(group, as_json=as_json)
    return group


def _draw(group: Group, directory: Path) -> None:
    """Write the picture of each set, named after it."""
    directory.mkdir(parents=True, exist_ok=True)
    for place, name in enumerate(dict.fromkeys(row.set for row in group.rows)):
        drawn = side_by_side_in_group(f"set-{place}", [row for row in group.rows if row.set == name])
        (directory / f"{name}.svg").write_text(drawn, encoding="utf-8")


def _tell(group: Group, *, as_json: bool) -> None:
    if as_json:
        print_json(group)
        return
    screen = output()
    screen.print(f"{group.name}: {standing(group)}", soft_wrap=True)
    for row in group.rows:
        judged = ", ".join(f"{row.verdicts[name]} {word}" for name, word in _JUDGED if name in row.verdicts)
        setting = row.setting if row.preset is None else f"{row.setting} ({knobs(row.preset, row.config)})"
        words = f"{row.set}, {setting}: {row.succeeded} of {row.jobs}" + (f", judged {judged}" if judged else "")
        words += f", {row.missed} missed the target" if row.missed else ""
        screen.print(f"\n{words}", style="bold", soft_wrap=True)
        if row.succeeded:
            screen.print(_table(row))


def _table(row: GroupRow) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("", min_width=_FIGURE_WIDTH)
    for name in ("mean", "deviation", "95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    for words, spread, form in _figures(row):
        deviation = NOTHING if spread.deviation is None else form.replace("+", "").format(spread.deviation)
        interval = NOTHING if spread.interval is None else " to ".join(form.format(end) for end in spread.interval)
        table.add_row(words, form.format(spread.mean), deviation, interval)
    return table


def _figures(row: GroupRow) -> Iterator[tuple[str, Spread, str]]:
    """The lines shown for a row: words, spread, and number format."""
    data = next((data for data in _DATA if data in row.changes), None)
    if data is not None:
        for name, spread in sorted(row.changes[data].items(), key=lambda figure: figure[0] != _LOSS):
            yield f"{_DATA[data]} {name.replace('_', ' ')}", spread, "{:+.4f}"
    for words, size, form in (
        ("parameters removed", row.removed, "{:.1%}"),
        ("of the encoder's", row.encoder_removed, "{:.1%}"),
        ("fewer operations", row.operations, "{:.2f}x"),
        ("faster forward pass", row.latency, "{:.2f}x"),
        ("by pruning alone", row.latency_by_pruning, "{:.2f}x"),
    ):
        if size is not None:
            yield words, size, form


def _list(groups: Sequence[Group]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("group", no_wrap=True, min_width=ID_WIDTH)
    table.add_column("name", overflow="fold", max_width=NAME_WIDTH)
    table.add_column("jobs", overflow="fold")
    table.add_column("age", justify="right", no_wrap=True)
    for group in groups:
        table.add_row(group.id, group.name, standing(group), age(group.created_at))
    return table
