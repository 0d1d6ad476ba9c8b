"""A table of text cells, which the card renders as Markdown and the page as HTML."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from axformer.reporting.markdown import Markdown, in_markdown

UNKNOWN = "–"
"""In place of a figure that there is none of."""


@dataclass(frozen=True)
class Table:
    """Text cells; every row is as long as the head."""

    head: list[str]
    rows: list[list[str]]

    def markdown(self) -> Markdown:
        """The table in Markdown, each cell as text."""
        head, *rows = (list(map(in_markdown, cells)) for cells in (self.head, *self.rows))
        above, *below = (f"| {' | '.join(cells)} |" for cells in (head, *rows))
        return Markdown("\n".join([above, f"|{'---|' * len(head)}", *below]))


def number(value: float | None, form: str, scale: float = 1) -> str:
    """A figure as text, in units of 1 / ``scale``; a dash if there is none."""
    return UNKNOWN if value is None else format(value * scale, form)


def made_with(environment: Mapping[str, Any], figures: Mapping[str, str]) -> Table:
    """What produced a report: versions and hardware, and more figures."""
    known = {name: "unknown" if value is None else str(value) for name, value in environment.items()}
    return Table(["made with", "which"], [[name, value] for name, value in {**known, **figures}.items()])
