"""``axformer families``: the model families and heads that a pass supports."""

import json
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from axformer.cli.characters import Terminal

_HEADINGS = {
    "sequence classification": "sequence",
    "token classification": "token",
    "question answering": "question",
    "multiple choice": "choice",
}
"""Kinds of heads in one word, so that the table fits a terminal."""


_LEGEND = """Families by model_type in config.json, and the heads their models may have: sequence and token
classification, question answering, multiple choice, language models.
To add a family: docs/add-a-family.md."""


def families(
    as_json: Annotated[bool, typer.Option("--json", help="Print the matrix as JSON.")] = False,
) -> None:
    """List the supported model families, and the tasks of each."""
    matrix = family_matrix()
    if as_json:
        print(json.dumps(matrix, indent=1))  # noqa: T201 - this is what was asked for
        return
    console = Terminal()
    console.print(_table(matrix))
    console.print(" ".join(_LEGEND.split()))


def family_matrix() -> dict[str, dict[str, Any]]:
    """For each family, its head classes by kind (None if missing)."""
    from axformer.architectures.heads import HEAD_KINDS
    from axformer.architectures.registry import ARCHITECTURES

    return {
        name: {
            "heads": dict.fromkeys(HEAD_KINDS.values()) | {head.kind: head.name for head in architecture.heads},
        }
        for name, architecture in sorted(ARCHITECTURES.items())
    }


def _table(matrix: dict[str, dict[str, Any]]) -> Table:
    table = Table(
        title="What a pass can work on",
        box=box.SIMPLE_HEAD,
        padding=0,
    )
    table.add_column("family", no_wrap=True)
    kinds = list(next(iter(matrix.values()))["heads"])
    for kind in kinds:
        table.add_column(_HEADINGS.get(kind, kind), justify="center", no_wrap=True)
    for name, row in matrix.items():
        table.add_row(name, *("✓" if row["heads"][kind] else "·" for kind in kinds))
    return table
