"""``axformer upload``: send data or a checkpoint for use in jobs."""

from pathlib import Path
from typing import Annotated

import typer

from axformer.cli.remote import JsonOption, bar, notes, output, print_json, service
from axformer.client import Client, Upload


def upload(
    path: Annotated[Path, typer.Argument(help="A data file, an archive, or the directory of a checkpoint.")],
    as_json: JsonOption = False,
) -> None:
    """Upload a file or a checkpoint's directory, and print its reference for jobs."""
    with service() as client:
        stored = sent(client, path)
    if as_json:
        print_json(stored)
    else:
        output().print(stored.uri, soft_wrap=True)


def sent(client: Client, path: Path) -> Upload:
    """Send a file or a directory, with a progress bar on terminals."""
    size = sum(one.stat().st_size for one in path.iterdir() if one.is_file()) if path.is_dir() else _size(path)
    with bar(notes(), f"Sending {path.name or path}", size) as on_progress:
        return client.upload(path, on_progress)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
