"""What commands write to a terminal: no character that it cannot encode, and none from outside that controls it.

Rich draws tables in ASCII without UTF-8, so only letters and symbols are replaced here.
"""

import codecs
import io
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from axformer.reporting.markdown import visible

_INSTEAD = {
    "→": ">",
    "–": "-",
    "—": "-",
    "…": ".",
    "≥": ">",
    "≤": "<",
    "×": "x",
    "·": "-",
    "✓": "x",
    "’": "'",
    "“": '"',
    "”": '"',
}
"""One character for one, so that columns stay aligned."""
_UNKNOWN = "?"
_HANDLER = "axformer.characters"


def replace_unknown_characters() -> None:
    """Make standard output and standard error replace what they cannot encode, including lone surrogates in names."""
    codecs.register_error(_HANDLER, _instead)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def _instead(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError), "only what is written is replaced"
    unknown = error.object[error.start : error.end]
    return "".join(_INSTEAD.get(character, _UNKNOWN) for character in unknown), error.end


class Terminal(Console):
    """A console for words from anywhere: they are text without markup, and cannot move the cursor, colour or hide others."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"highlight": False, "markup": False} | options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of a renderable. Rich's own control codes are segments of another kind, and stay."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)
