"""Write a table as a Parquet file, row group by row group: flat columns, plain values, gzip.

That is the part of https://parquet.apache.org/docs/file-format that a trace needs; pyarrow would double the API's image.
"""

import gzip
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

_MAGIC = b"PAR1"
_PLAIN, _RLE, _GZIP, _UTF8, _DATA_PAGE, _VERSION = 0, 3, 2, 0, 0, 1
"""The format's numbers of encodings, the codec, the type of texts, the kind of page and its own version."""


class ParquetType(IntEnum):
    """What a column holds, as the format numbers it."""

    BOOLEAN = 0
    INTEGER = 2
    NUMBER = 5
    TEXT = 6


@dataclass(frozen=True)
class ParquetColumn:
    """A column of a table."""

    name: str
    kind: ParquetType
    may_be_none: bool = False


def parquet_file(columns: Sequence[ParquetColumn], groups: Iterable[Sequence[Mapping[str, Any]]]) -> Iterator[bytes]:
    """The pieces of a file: one a row group, and its directory at the end.

    Args:
        groups: the rows of each row group, by the columns' names.
    """
    yield _MAGIC
    offset, directory = len(_MAGIC), list[Any]()
    for rows in groups:
        group, chunks = b"", list[Any]()
        for column in columns:
            header, packed, size = _page(column, [row[column.name] for row in rows])
            at, group = offset + len(group), group + header + packed
            chunks.append(_chunk(column, len(rows), at, len(header) + size, len(header) + len(packed)))
        directory.append({1: chunks, 2: _Long(sum(chunk[3][6] for chunk in chunks)), 3: _Long(len(rows))})
        offset += len(group)
        yield group
    count = _Long(sum(group[3] for group in directory))
    schema = [{4: "schema", 5: len(columns)}, *map(_described, columns)]
    footer = _thrift({1: _VERSION, 2: schema, 3: count, 4: directory, 6: "axformer"})[1]
    yield footer + struct.pack("<i", len(footer)) + _MAGIC


def _described(column: ParquetColumn) -> dict[int, Any]:
    """The format's SchemaElement."""
    element = {1: int(column.kind), 3: int(column.may_be_none), 4: column.name}
    return element | ({6: _UTF8, 10: {1: {}}} if column.kind is ParquetType.TEXT else {})


def _chunk(column: ParquetColumn, count: int, offset: int, size: int, packed: int) -> dict[int, Any]:
    """The format's ColumnChunk: where the one page of a column in a row group is, and how many bytes it has, also packed."""
    about = {1: int(column.kind), 2: [_PLAIN, _RLE], 3: [column.name], 4: _GZIP, 5: _Long(count)}
    return {2: _Long(offset), 3: about | {6: _Long(size), 7: _Long(packed), 9: _Long(offset)}}


def _page(column: ParquetColumn, values: Sequence[Any]) -> tuple[bytes, bytes, int]:
    """Header and packed content of a page, and the content's size before."""
    content = _plain(column.kind, [value for value in values if value is not None])
    if column.may_be_none:
        levels = _bits([value is not None for value in values])
        run = _varint(len(levels) << 1 | 1) + levels  # groups of eight levels, a bit each
        content = struct.pack("<i", len(run)) + run + content
    packed = gzip.compress(content, mtime=0)
    kind = {1: len(values), 2: _PLAIN, 3: _RLE, 4: _RLE}
    return _thrift({1: _DATA_PAGE, 2: len(content), 3: len(packed), 5: kind})[1], packed, len(content)


def _plain(kind: ParquetType, values: Sequence[Any]) -> bytes:
    if kind is ParquetType.BOOLEAN:
        return _bits(values)
    if kind is ParquetType.TEXT:
        texts = [value.encode() for value in values]
        return b"".join(struct.pack("<i", len(text)) + text for text in texts)
    return struct.pack(f"<{len(values)}{'q' if kind is ParquetType.INTEGER else 'd'}", *values)


def _bits(values: Sequence[bool]) -> bytes:
    """Eight a byte, the first in its lowest bit."""
    number = sum(1 << place for place, value in enumerate(values) if value)
    return number.to_bytes((len(values) + 7) // 8, "little")


class _Long(int):
    """A number of 64 bits; others have 32."""


def _thrift(value: Any) -> tuple[int, bytes]:
    """The number of a type in Thrift's compact protocol, and the bytes; a mapping is a structure by its fields' numbers."""
    match value:
        case int():
            return (6 if isinstance(value, _Long) else 5), _varint(value << 1)  # none is negative
        case str():
            return 8, _varint(len(value.encode())) + value.encode()
        case list():
            items = [_thrift(item) for item in value]
            return 9, _sized(len(items), items[0][0] if items else 12) + b"".join(item for _, item in items)
        case _:
            fields, last = b"", 0
            for number, content in value.items():
                kind, encoded = _thrift(content)
                fields, last = fields + bytes([(number - last) << 4 | kind]) + encoded, number
            return 12, fields + b"\0"


def _sized(count: int, kind: int) -> bytes:
    """How a list of values of one type begins."""
    return bytes([count << 4 | kind]) if count < 15 else bytes([15 << 4 | kind]) + _varint(count)


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit says that more follow."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])
