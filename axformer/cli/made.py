"""Show the outcome of each requested form."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from axformer.forms.kinds import KINDS

if TYPE_CHECKING:
    from axformer.forms.form import Form, NotMade


MadeJsonOption = Annotated[bool, typer.Option("--json", help="Print the created forms as JSON.")]


def show_made(console: Console, made: "Sequence[Form | NotMade]", output: Path, *, as_json: bool) -> None:
    """Print one line per form: its place and size, or why it was not made."""
    from axformer.forms.form import Form

    if as_json:
        print(json.dumps([_content(form, output) for form in made], indent=1))  # noqa: T201 - this is what was asked for
        return
    for form in made:
        if isinstance(form, Form):
            console.print(
                f"{form.name}: {output / KINDS[form.name].directory}/, {form.bytes / 1e6:.1f} MB", soft_wrap=True
            )
        else:
            console.print(f"{form.name}: not made; {form.reason}", soft_wrap=True)


def _content(form: "Form | NotMade", output: Path) -> dict[str, Any]:
    from axformer.forms.form import Form

    if isinstance(form, Form):
        return {
            "name": form.name,
            "made": True,
            "directory": str(output / KINDS[form.name].directory),
            "bytes": form.bytes,
        }
    return {"name": form.name, "made": False, "reason": form.reason}
