"""What became of each form that was asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from axformer.forms.kinds import KINDS

if TYPE_CHECKING:
    from axformer.forms.form import Form, NotMade


def show_made(console: Console, made: "Sequence[Form | NotMade]", output: Path) -> None:
    """One line a form: where it lies and how large it is, or why it is not there."""
    from axformer.forms.form import Form

    for form in made:
        if isinstance(form, Form):
            console.print(
                f"{form.name}: {output / KINDS[form.name].directory}/, {form.bytes / 1e6:.1f} MB", soft_wrap=True
            )
        else:
            console.print(f"{form.name}: not made; {form.reason}", soft_wrap=True)
