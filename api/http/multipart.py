"""The one file of a ``multipart/form-data`` body, read as it arrives.

The framework's own parser keeps a whole copy on the disk before the endpoint sees a byte; here the bytes go from the
connection to the storage.
"""

import time
from collections import deque
from collections.abc import AsyncIterator

import anyio
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from api.errors import BadRequestError, FieldError, InvalidInputError, TooSlowError, UnsupportedMediaError

FIELD = "file"
_HOW = "send it as curl -F file=@model.tar.gz does"
_FILENAME_LENGTH = 255  # what file systems take


async def paced(body: AsyncIterator[bytes], slowest: int, seconds: float) -> AsyncIterator[bytes]:
    """The pieces of a body that comes fast enough; only the time that its sender takes counts.

    Args:
        slowest: bytes a second.
        seconds: over how long the speed is measured, and the longest silence.

    Raises:
        TooSlowError: it comes too slowly.
    """
    waited, received = 0.0, 0
    refusal = TooSlowError(
        f"the file comes with less than {slowest} bytes a second; send it over a faster connection, or give a URL instead"
    )
    while True:
        began = time.monotonic()
        try:
            with anyio.fail_after(seconds):
                piece = await anext(body, None)
        except TimeoutError:
            raise refusal from None
        if piece is None:
            return
        waited, received = waited + time.monotonic() - began, received + len(piece)
        if waited >= seconds:
            if received < slowest * waited:
                raise refusal
            waited, received = 0.0, 0
        yield piece


class FilePart:
    """The file in a form, part by part. Ask for ``filename`` only after the first chunk."""

    def __init__(self, content_type: str | None, body: AsyncIterator[bytes]) -> None:
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data" or not options.get(b"boundary"):
            raise UnsupportedMediaError(f"the body is not multipart/form-data with a boundary; {_HOW}")
        self._body = body
        self._parser = MultipartParser(
            options[b"boundary"],
            {
                "on_part_begin": self._begin_part,
                "on_header_field": self._extend_name,
                "on_header_value": self._extend_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_headers,
                "on_part_data": self._keep_data,
                "on_end": self._end_form,
            },
        )
        self._name, self._value, self._disposition = b"", b"", b""
        self._pieces: deque[bytes] = deque()
        self._parts = 0
        self._is_complete = False
        self.filename = ""

    async def next_chunk(self) -> bytes:
        """The next bytes of the file; empty at its end.

        Raises:
            BadRequestError: the body is malformed or ends too early.
            InvalidInputError: the form holds anything but one file.
        """
        while not self._pieces:
            if self._is_complete:  # whatever follows the form is not waited for
                self._check_end()
                return b""
            try:
                received = await anext(self._body, None)
                if received is None:
                    self._check_end()
                    return b""
                self._parser.write(received)
            except FormParserError as error:
                raise BadRequestError(f"the body is not well-formed multipart/form-data: {error}") from None
            except ClientDisconnect:
                raise BadRequestError("the connection ended before the body did; send it again") from None
        pieces = b"".join(self._pieces)
        self._pieces.clear()
        return pieces

    def _check_end(self) -> None:
        if not self._is_complete:
            raise BadRequestError("the body ends before the form does; send it again")
        if not self._parts:
            raise _not_one_file("the form is empty")

    def _begin_part(self) -> None:
        self._parts += 1
        if self._parts > 1:
            raise _not_one_file("the form holds more than one part")
        self._disposition = b""

    def _extend_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _extend_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value
        self._name, self._value = b"", b""

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._disposition)
        field = options.get(b"name", b"").decode(errors="replace")
        if field != FIELD:
            raise _not_one_file(f"the form holds a field '{field}'")
        self.filename = _file_name(options.get(b"filename", b"").decode(errors="replace"))

    def _keep_data(self, data: bytes, start: int, end: int) -> None:
        self._pieces.append(data[start:end])

    def _end_form(self) -> None:
        self._is_complete = True


def _file_name(given: str) -> str:
    """The last part of a path as browsers and scripts send it.

    Raises:
        InvalidInputError: nothing of it can be a file name.
    """
    name = given.replace("\\", "/").rpartition("/")[2].strip()
    if not name or not name.isprintable() or name in (".", "..") or len(name.encode()) > _FILENAME_LENGTH:
        raise _not_one_file(f"'{name}' is not a file name; its ending says how the file is read, for example .jsonl")
    return name


def _not_one_file(what: str) -> InvalidInputError:
    detail = f"{what}; it must hold one file in the field '{FIELD}': {_HOW}"
    return InvalidInputError(detail, errors=[FieldError(detail, pointer=f"#/{FIELD}")])
