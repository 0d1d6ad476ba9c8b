"""A table of text cells, which the card renders as Markdown and the page as HTML."""

from dataclasses import dataclass

UNKNOWN = "–"
"""In place of a figure that there is none of."""


@dataclass(frozen=True)
class Table:
    """Text cells; every row is as long as the head."""

    head: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """The table in Markdown."""
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (self.head, ["---"] * len(self.head), *self.rows))


def number(value: float | None, form: str, scale: float = 1) -> str:
    """A figure as text, in units of 1 / ``scale``; a dash if there is none."""
    return UNKNOWN if value is None else format(value * scale, form)
