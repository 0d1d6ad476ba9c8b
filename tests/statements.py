"""What is said to the database, for tests of how often something is asked, and of what is read."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event


@contextmanager
def said_to(engine: Any) -> Iterator[list[str]]:
    """All statements that an engine or connection is given meanwhile."""
    said: list[str] = []

    def note(*executed: object) -> None:
        said.append(str(executed[2]))

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield said
    finally:
        event.remove(engine, "before_cursor_execute", note)


def reads_report(statement: str) -> bool:
    """Whether a statement brings a job's whole report, or the whole path in it, here."""
    brought = statement if statement.lstrip().startswith(("SELECT", "WITH")) else statement.partition("RETURNING")[2]
    return re.search(r"\bjobs\w*\.(report|path)\b", brought) is not None
