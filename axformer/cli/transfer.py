"""A progress bar for uploads and downloads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn


@contextmanager
def bar(console: Console, words: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar while the block runs, on terminals; yields the function to call with the size of each piece."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(words, total=total)
        yield lambda added: shown.advance(task, added)
