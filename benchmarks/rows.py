"""Labelled sentences as JSON Lines: ``{"text", "text_pair"?, "label"}``; a label is a class name or a float."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One labelled sample."""

    text: str
    label: str | float
    text_pair: str | None = None

    def as_json(self) -> str:
        """The row as one line of JSON, without the line break."""
        pair = {} if self.text_pair is None else {"text_pair": self.text_pair}
        return json.dumps({"text": self.text, **pair, "label": self.label}, ensure_ascii=False)


def read_rows(path: Path) -> list[Row]:
    """All rows of a JSON Lines file."""
    with path.open(encoding="utf-8") as lines:
        return [Row(**json.loads(line)) for line in lines]


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row.as_json()}\n" for row in rows), encoding="utf-8")
