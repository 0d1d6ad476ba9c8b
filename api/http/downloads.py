"""Files over HTTP: strong ETag, conditions, ranges and digest; read in pieces, never held whole.

The ETag is the content's SHA-256, so an interrupted download can be continued safely (``If-Range``), and one that a
caller already has costs nothing (``If-None-Match``).
"""

import base64
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response, StreamingResponse

from api.errors import RangeError
from store.storage.storage import Storage
from store.tables.files import Artifact

ReadSlice = Callable[[int, int], Iterator[bytes]]
"""The bytes from the first number to the second, half open, in pieces."""


@dataclass(frozen=True)
class Download:
    """A file to be sent."""

    name: str
    media_type: str
    sha256: str
    size: int
    read: ReadSlice
    address: str | None = None
    """Where the whole file can be downloaded for a short while without this service, if the operator wants that."""

    @property
    def etag(self) -> str:
        """The strong entity tag."""
        return f'"{self.sha256}"'


def answer(download: Download, *, method: str, headers: Mapping[str, str]) -> Response:
    """The response to a GET or HEAD with these request headers: 200, 206, 304, or 307 to an address of the storage.

    Raises:
        RangeError: the range lies outside the file.
    """
    described = _described(download)
    if _is_known(headers.get("if-none-match"), download.etag):
        del described["Content-Disposition"]
        return Response(status_code=304, headers=described)
    described["Content-Type"] = download.media_type
    if method == "HEAD":
        return Response(headers=described | {"Content-Length": str(download.size)})
    if download.address is not None and method == "GET" and "if-range" not in headers:
        return RedirectResponse(download.address, headers={"Cache-Control": "no-store"})  # 307: the range goes along
    wanted = None
    if "range" in headers and headers.get("if-range", download.etag) == download.etag:
        wanted = parse_range(headers["range"], download.size)
    if wanted is None:
        described["Content-Length"] = str(download.size)
        return StreamingResponse(download.read(0, download.size), headers=described)
    described["Content-Length"] = str(len(wanted))
    described["Content-Range"] = f"bytes {wanted.start}-{wanted.stop - 1}/{download.size}"
    return StreamingResponse(download.read(wanted.start, wanted.stop), status_code=206, headers=described)


def _described(download: Download) -> dict[str, str]:
    digest = base64.b64encode(bytes.fromhex(download.sha256)).decode()
    return {
        "ETag": download.etag,
        "Accept-Ranges": "bytes",
        "Repr-Digest": f"sha-256=:{digest}:",
        "Content-Disposition": attachment(download.name),
        # A retried job has other files under the same names, so a cache must revalidate; that costs one 304.
        "Cache-Control": "private, no-cache",
    }


def attachment(name: str) -> str:
    """The header that makes a browser save the file under the last part of its name (RFC 6266)."""
    base = name.rpartition("/")[2]
    plain = "".join(
        letter if letter.isascii() and letter.isprintable() and letter not in '"\\%' else "_" for letter in base
    )
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(base, safe='')}"


def _is_known(if_none_match: str | None, etag: str) -> bool:
    if if_none_match is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag in tags


_END = bytes(2 * tarfile.BLOCKSIZE)
"""Two empty blocks end an archive."""


@dataclass(frozen=True)
class Tar:
    """An archive to be sent."""

    size: int
    content: Iterator[bytes]


def tar_of(files: Sequence[Artifact], storage: Storage, folder: str) -> Tar:
    """The archive of files in a folder of the storage. It has no times, so the same files give the same archive.

    Raises:
        StorageError: one of them is not there.
    """
    parts = [(_header(file.name, file.bytes), storage.read(folder, file.sha256), file.bytes) for file in files]
    size = sum(len(header) + length + _padding(length) for header, _, length in parts) + len(_END)

    def content() -> Iterator[bytes]:
        for header, stored, length in parts:
            yield header
            yield from stored
            yield bytes(_padding(length))
        yield _END

    return Tar(size, content())


def _header(name: str, length: int) -> bytes:
    about = tarfile.TarInfo(name)
    about.size = length
    return about.tobuf(tarfile.PAX_FORMAT)


def _padding(length: int) -> int:
    return -length % tarfile.BLOCKSIZE


_RANGE = re.compile(r"bytes=[ \t]*(?P<first>\d*)-(?P<last>\d*)[ \t]*", re.IGNORECASE | re.ASCII)
_DIGITS = 18  # more than any file has; longer numbers are cut to this many nines


def parse_range(header: str, size: int) -> range | None:
    """The bytes that the header asks of a file of ``size`` bytes.

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
    return range(first, min(last + 1, size))


def _suffix(length: int, size: int) -> range | None:
    if length == 0:
        raise _outside(f"bytes=-{length}", size)
    return range(max(0, size - length), size) if size else None


def _number(digits: str) -> int:
    return int(digits) if len(digits) <= _DIGITS else 10**_DIGITS - 1


def _outside(header: str, size: int) -> RangeError:
    return RangeError(
        f"Range '{header}' lies outside the file, which has {size} bytes", headers={"Content-Range": f"bytes */{size}"}
    )
