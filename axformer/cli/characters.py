"""Replace characters that a console cannot encode, so that no command fails because of them.

Rich draws tables in ASCII without UTF-8, so only letters and symbols are replaced here.
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
