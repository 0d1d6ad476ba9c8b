"""Read CSV and its relatives as text: every cell stays what it is, for ``007`` is a name and ``true`` may be one.

Commas, semicolons (as Excel writes them in most of Europe), tabs and vertical bars are told apart by what makes a table of
the file. Cells are quoted as RFC 4180 has it, or with backslashes. Files with tabs are mostly not quoted at all, as those of
GLUE, where a quotation mark is one.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from axformer.data.limits import CELL_CHARACTERS

DELIMITERS = (",", ";", "\t", "|")
LINES_OF_A_ROW = 8
"""Lines that the last row of a file that was cut is looked for in."""
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_DIRECTIVE = re.compile(r"sep=(.)(?:\r\n|\r|\n)")
"""The first line by which Excel says what separates the cells."""

csv.field_size_limit(CELL_CHARACTERS + 1)  # of the process; the parser's own limit is less than a long text


class DelimitedError(ValueError):
    """The text is not a table; the message says where and what to do."""


@dataclass(frozen=True)
class Delimited:
    """A table of texts."""

    names: list[str]
    rows: list[list[str]]
    """Each as long as ``names``."""
    delimiter: str


def read_delimited(text: str, *, tabs: bool = False) -> Delimited:
    """The table that a text holds.

    Args:
        text: a line of names, then the rows.
        tabs: cells are separated by tabs, whatever the text looks like.

    Raises:
        DelimitedError: the rows have not as many cells as there are names, or the quotation marks do not match.
    """
    directive = _DIRECTIVE.match(text)
    if directive and directive[1] in DELIMITERS:
        return _with(text[directive.end() :], directive[1])
    first: DelimitedError | None = None
    for delimiter in ("\t",) if tabs else _candidates(text):
        try:
            return _with(text, delimiter)
        except DelimitedError as error:
            first = first or error
    raise first or DelimitedError("it is empty")


def head_of(text: str, *, tabs: bool = False) -> Delimited:
    """As much of the table as the beginning of a file holds, whose last row may be cut off.

    Raises:
        DelimitedError: not even that is a table.
    """
    lines = io.StringIO(text, newline="").readlines()
    for end in range(len(lines), max(0, len(lines) - LINES_OF_A_ROW), -1):
        try:
            return read_delimited("".join(lines[:end]), tabs=tabs)
        except DelimitedError:
            continue
    raise DelimitedError("its first lines are not a table")


def looks_like_a_row(names: Iterable[str]) -> bool:
    """Whether what was taken for names of columns is more like the first row of a file without names."""
    return any(re.fullmatch(r"-?\d+(\.\d+)?", name) or len(name.split()) > 3 for name in names)


def _candidates(text: str) -> list[str]:
    """The delimiters that the first line has, most usual first; a comma where it has none, for one column needs none."""
    header = next(iter(io.StringIO(text, newline="")), "")
    return [delimiter for delimiter in DELIMITERS if delimiter in header] or [","]


def _with(text: str, delimiter: str) -> Delimited:
    if delimiter == "\t":
        try:
            return _unquoted(text)
        except DelimitedError:
            pass
    try:
        return _table(_records(text, delimiter), delimiter)
    except DelimitedError:
        if '\\"' not in text:
            raise
    return _table(_records(text, delimiter, escaped=True), delimiter)


def _unquoted(text: str) -> Delimited:
    """Lines of cells between tabs; a cell that is quoted from its first character to its last loses the quotes."""
    lines = csv.reader(io.StringIO(text, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE)
    return _table(((number, [_bare(cell) for cell in cells]) for number, cells in _numbered(lines)), "\t")


def _bare(cell: str) -> str:
    quoted = _QUOTED.fullmatch(cell)
    return quoted[1].replace('""', '"') if quoted else cell


def _records(text: str, delimiter: str, *, escaped: bool = False) -> Iterator[tuple[int, list[str]]]:
    lines = io.StringIO(text, newline="")
    if escaped:
        return _numbered(csv.reader(lines, delimiter=delimiter, strict=True, doublequote=False, escapechar="\\"))
    return _numbered(csv.reader(lines, delimiter=delimiter, strict=True))


def _numbered(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Each record with the number of the line it begins in, without blank lines."""
    begins = 1
    while True:
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DelimitedError(
                f"line {begins}: {error}; put a cell that holds a separator, a quotation mark or a line break in quotation "
                'marks, and write a quotation mark in it twice ("")'
            ) from None
        if record:
            yield begins, record
        begins = reader.line_num + 1  # type: ignore[attr-defined]


def _table(records: Iterator[tuple[int, list[str]]], delimiter: str) -> Delimited:
    _, names = next(records, (0, []))
    rows = []
    for line, cells in records:
        if len(cells) != len(names):
            raise DelimitedError(
                f"line {line} has {_cells(len(cells))} and the first line names {len(names)}, with a {_NAMES[delimiter]} "
                "between them; put a cell that holds the separator in quotation marks"
            )
        rows.append(cells)
    return Delimited(_named(names), rows, delimiter)


def _cells(count: int) -> str:
    return f"{count} cell" if count == 1 else f"{count} cells"


def _named(names: list[str]) -> list[str]:
    """The names without spaces around them; one that is empty, as pandas writes it for its index, gets its place."""
    names = [name.strip() or f"Unnamed: {index}" for index, name in enumerate(names)]
    twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if twice is not None:
        row = "; the first line looks like a row: add a line of names above it" if looks_like_a_row(names) else ""
        raise DelimitedError(f"two columns are called '{twice}'{row or '; rename one'}")
    return names
