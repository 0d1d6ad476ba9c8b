"""The first answer of a finished run: what can be deployed, at which metric and speed, and which form to take."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from axformer.reporting.deploy_table import deployables


def show_deployables(console: Console, report: Mapping[str, Any]) -> None:
    """Print the table of forms and the form to deploy; nothing for a report without forms.

    Args:
        report: the content of a ``report.json``, or its summary.
    """
    found = deployables(report)
    if found is None:
        return
    text, best = found.table(), found.best
    table = Table(title="What you can deploy", title_justify="left")
    for name in text.head:
        table.add_column(name, justify="left" if not name else "right")
    for row, cells in zip(found.rows, text.rows, strict=True):
        table.add_row(*cells, style="bold" if row is best else None)
    console.print(table)
    console.print(found.sentence, soft_wrap=True)
