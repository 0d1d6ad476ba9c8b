"""Let no command fail because a console cannot show a character: what it lacks is written in characters that it has.

Rich draws its tables in ASCII where a console has no UTF-8, so only letters and signs are left to this.
"""

import codecs
import io
import sys

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
"""One for one, so that columns stay where they are."""
_UNKNOWN = "?"
_HANDLER = "axformer.characters"


def replace_unknown_characters() -> None:
    """Have standard output and standard error replace what they cannot encode, halves of characters in names among it."""
    codecs.register_error(_HANDLER, _instead)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def _instead(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError), "only what is written is replaced"
    unknown = error.object[error.start : error.end]
    return "".join(_INSTEAD.get(character, _UNKNOWN) for character in unknown), error.end
