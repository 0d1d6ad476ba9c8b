"""A table of text cells, which the card renders as Markdown and the page as HTML."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Text cells; every row is as long as the head."""

    head: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """The table in Markdown."""
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (self.head, ["---"] * len(self.head), *self.rows))
