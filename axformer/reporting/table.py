"""A table before it is written: the model card makes Markdown of it, the report a part of a page."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Cells as text, all rows as long as the head."""

    head: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """The table in Markdown."""
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (self.head, ["---"] * len(self.head), *self.rows))
