"""Words from outside in Markdown: a class, a label, a file or a reason may be called anything, and must stay text.

The template engine gives every value of a Markdown template to :func:`in_markdown`, so that what is not marked as
:class:`Markdown` cannot begin a heading, an image, a link, a table or HTML. Source: CommonMark 0.31 and GitHub's extensions.
"""

import re
from typing import Any

LONGEST_WORD = 80
"""Most characters of a name that are shown."""
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]+")
"""Control characters, those that turn the direction of text, and halves of characters."""
_CODE = re.compile(r"(?<!`)`[\w.,=+%() /-]+`(?!`)")
"""Code as our own passages write it. Without its marks it would be harmless text."""
_MARKS = re.compile(
    r"[\\`*|~$]|<(?=[a-z/!?])|(?<![^\W_])_|_(?![^\W_])|\](?=[(:\[])|\[(?=\^)|&(?=[#\w]+;)|(?<=:)/(?=/)|(?<=www)\."
    r"|^[#+=>-](?=[\s#+=>-]|$)",
    re.IGNORECASE,
)
"""What has a meaning in Markdown where it stands, beginnings of bare addresses included."""
_NUMBER = re.compile(r"^(\d{1,9})(?=[.)](\s|$))")
"""What begins a numbered list."""


class Markdown(str):
    """Text that is Markdown; whatever is made of it is plain text again."""

    __slots__ = ()


def visible(text: str) -> str:
    """Text without characters that control a terminal, hide, or turn the direction of others; lines stay lines."""
    return _HIDDEN.sub("", text)


def shown_in_html(value: Any) -> Any:
    """What a template of HTML makes of a value before it escapes it."""
    return visible(value) if type(value) is str else value


def word(name: str) -> str:
    """A name from outside, on one line and no longer than ``LONGEST_WORD``."""
    return " ".join(visible(name).split())[:LONGEST_WORD]


def in_markdown(value: Any) -> Markdown:
    """A value as Markdown that shows just its text, on one line; harmless code between backticks stays code."""
    if isinstance(value, Markdown):
        return value
    text, parts, start = visible(re.sub(r"\s", " ", str(value))), [], 0
    for code in _CODE.finditer(text):
        parts += [_escaped(text[start : code.start()]), code.group()]
        start = code.end()
    return Markdown("".join([*parts, _escaped(text[start:])]))


def _escaped(text: str) -> str:
    return _NUMBER.sub(r"\1\\", _MARKS.sub(r"\\\g<0>", text))


def strong(value: Any) -> Markdown:
    """A value in bold."""
    return Markdown(f"**{in_markdown(str(value).strip())}**")


def mono(name: str) -> Markdown:
    """A name as code, where Markdown escapes nothing."""
    return Markdown("`" + word(name).replace("`", "'") + "`")


def fenced(program: str, language: str) -> Markdown:
    """A program as a block of code, between marks that are longer than any in it."""
    marks = max([2, *map(len, re.findall("`+", program))]) + 1
    return Markdown(f"{'`' * marks}{language}\n{visible(program)}\n{'`' * marks}")
