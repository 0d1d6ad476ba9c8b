"""Read CSV-like files as text. Cells are not converted, since ``007`` is a name and ``true`` may be one.

The delimiter (comma, semicolon as Excel writes it in most of Europe, tab, or vertical bar) is the one that yields a table.
Cells are quoted as in RFC 4180 or with backslashes, also after a space. Tab-separated files are mostly unquoted, such as those
of GLUE, where a quotation mark is literal.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

DELIMITERS = (",", ";", "\t", "|")
CELL_CHARACTERS = 1_000_000
"""Characters of a text: a long novel. Tokenizers take seconds for each such text."""
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_QUOTED_WITH_BACKSLASHES = re.compile(r'"((?:[^"\\]|\\.)*)"')
_QUOTED_AFTER_SPACE = re.compile(r' +"(?:[^"]|"")*"')
_BACKSLASHED = re.compile(r"\\(.)", re.DOTALL)
_DIRECTIVE = re.compile(r"sep=(.)(?:\r\n|\r|\n)")
"""The first line in which Excel names the delimiter."""

csv.field_size_limit(CELL_CHARACTERS + 1)  # of the process; the parser's own limit is less than a long text


class DelimitedError(ValueError):
    """The text is not a table; the message says where and what to do."""


@dataclass(frozen=True)
class Delimited:
    """A table of text cells."""

    names: list[str]
    rows: list[list[str]]
    """Rows, each as long as ``names``."""
    delimiter: str


def read_delimited(text: str, *, tabs: bool = False) -> Delimited:
    """Parse a table.

    Args:
        text: a line of column names, then the rows.
        tabs: whether the delimiter is a tab, whatever the text looks like.

    Raises:
        DelimitedError: a row has more or fewer cells than there are names, or quotation marks do not match.
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


def looks_like_a_row(names: Iterable[str]) -> bool:
    """Whether the column names look more like the first row of a file without names."""
    return any(re.fullmatch(r"-?\d+(\.\d+)?", name) or len(name.split()) > 3 for name in names)


def _candidates(text: str) -> list[str]:
    """The delimiters in the first line, the most common first; a comma if there is none, since one column needs none."""
    header = _header(text)
    return [delimiter for delimiter in DELIMITERS if delimiter in header] or [","]


def _header(text: str) -> str:
    return re.split(r"[\r\n]", text, maxsplit=1)[0]


def _with(text: str, delimiter: str) -> Delimited:
    readers = [_quoted, _escaped] if '\\"' in text else [_quoted]
    if delimiter == "\t":  # of one column, only the quotation marks say where a cell ends
        readers.insert(0 if delimiter in _header(text) else 1, _unquoted)
    for read in readers[:-1]:
        try:
            return read(text, delimiter)
        except DelimitedError:
            continue
    return readers[-1](text, delimiter)


def _quoted(text: str, delimiter: str) -> Delimited:
    """Parse cells quoted as in RFC 4180, also where a space precedes the quotation mark."""
    refused: DelimitedError | None = None
    try:
        table = _table(_records(text, delimiter), delimiter)
    except DelimitedError as error:
        refused = error
    if f'{delimiter} "' in text and (refused or _has_quoted_after_space(table)):
        try:
            return _table(_records(text, delimiter, skipinitialspace=True), delimiter)
        except DelimitedError:
            pass
    if refused:
        raise refused
    return table


def _has_quoted_after_space(table: Delimited) -> bool:
    return any(_QUOTED_AFTER_SPACE.fullmatch(cell) for cells in (table.names, *table.rows) for cell in cells)


def _escaped(text: str, delimiter: str) -> Delimited:
    """Parse cells in which a backslash precedes a quotation mark."""
    return _table(_records(_only_escapes(text, delimiter), delimiter, doublequote=False, escapechar="\\"), delimiter)


def _unquoted(text: str, delimiter: str) -> Delimited:
    """Parse lines without quoting; a cell that is quoted as a whole loses its quotes."""
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=csv.QUOTE_NONE)
    return _table(((number, [_bare(cell) for cell in cells]) for number, cells in _numbered(lines)), delimiter)


def _bare(cell: str) -> str:
    if quoted := _QUOTED.fullmatch(cell):
        return quoted[1].replace('""', '"')
    if '\\"' in cell and (quoted := _QUOTED_WITH_BACKSLASHES.fullmatch(cell)):
        return _BACKSLASHED.sub(lambda escape: escape[1] if escape[1] in '"\\' else escape[0], quoted[1])
    return cell


def _only_escapes(text: str, delimiter: str) -> str:
    """The text with every backslash doubled that escapes nothing, as in ``C:\\new``, since the parser would drop it."""
    escaped = f'"\\\r\n{delimiter}'
    return _BACKSLASHED.sub(lambda escape: escape[0] if escape[1] in escaped else f"\\{escape[0]}", text)


def _records(text: str, delimiter: str, **quoting: Any) -> Iterator[tuple[int, list[str]]]:
    return _numbered(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, **quoting))


def _numbered(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Each record with the number of its first line, without blank lines."""
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
    """The names without surrounding spaces; an empty name, which pandas writes for its index, becomes its position."""
    names = [name.strip() or f"Unnamed: {index}" for index, name in enumerate(names)]
    twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if twice is not None:
        row = "; the first line looks like a row: add a line of names above it" if looks_like_a_row(names) else ""
        raise DelimitedError(f"two columns are called '{twice}'{row or '; rename one'}")
    return names
