"""Byte ranges (RFC 9110, section 14): the one range that a request asks for, as a slice of the file."""

import re
from dataclasses import dataclass

from api.errors import RangeError

_RANGE = re.compile(r"bytes=[ \t]*(?P<first>\d*)-(?P<last>\d*)[ \t]*", re.IGNORECASE | re.ASCII)
_DIGITS = 18  # more than any file has; longer numbers are cut to this many nines


@dataclass(frozen=True)
class ByteRange:
    """Bytes ``start`` to ``stop``, half open."""

    start: int
    stop: int

    def content_range(self, size: int) -> str:
        """The header that names this part of a file of ``size`` bytes."""
        return f"bytes {self.start}-{self.stop - 1}/{size}"


def parse_range(header: str, size: int) -> ByteRange | None:
    """The range that the header asks of a file of ``size`` bytes.

    None if the whole file is to be sent: the header is malformed, of another unit, or asks for several ranges, all
    of which a server may ignore.

    Raises:
        RangeError: the range begins beyond the file's end.
    """
    found = _RANGE.fullmatch(header)
    if found is None or not (found["first"] or found["last"]):
        return None
    if not found["first"]:
        return _suffix(_number(found["last"]), size)
    first = _number(found["first"])
    last = _number(found["last"]) if found["last"] else size - 1
    if found["last"] and last < first:
        return None
    if first >= size:
        raise _outside(header, size)
    return ByteRange(first, min(last + 1, size))


def _suffix(length: int, size: int) -> ByteRange | None:
    if length == 0:
        raise _outside(f"bytes=-{length}", size)
    return ByteRange(max(0, size - length), size) if size else None


def _number(digits: str) -> int:
    return int(digits) if len(digits) <= _DIGITS else 10**_DIGITS - 1


def _outside(header: str, size: int) -> RangeError:
    return RangeError(
        f"Range '{header}' lies outside the file, which has {size} bytes", headers={"Content-Range": f"bytes */{size}"}
    )
