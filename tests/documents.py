"""The documents as tests read them: their pages, blocks of code, and the commands in these."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
_COMMENT = re.compile(r"(?m)(^|\s)#.*$")
_ASSIGNMENT = re.compile(r"^[A-Z_]+=")


def blocks_of(page: Path, language: str) -> list[str]:
    """What stands in a page's blocks of code in one language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def commands_of(page: Path) -> Iterator[list[str]]:
    """The words of every simple command in a page's blocks for a shell, also of those in ``$(...)``."""
    for block in blocks_of(page, "sh"):
        yield from commands_in(block)


def commands_in(block: str) -> Iterator[list[str]]:
    """The words of every simple command; assignments before a command and comments are left out."""
    text = _COMMENT.sub("", block).replace("\\\n", " ").replace("$(", " ( ")
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", False, ""
    lexer.wordchars += "$@%+,:{}[]^"
    words: list[str] = []
    for token in [*lexer, "\n"]:
        if set(token) <= set("();|&\n"):
            if words:
                yield words
            words = []
        elif words or not _ASSIGNMENT.match(token):
            words.append(token)
