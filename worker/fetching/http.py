"""Files behind URLs."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from urllib.parse import quote, urlsplit, urlunsplit

import httpx2

from worker.fetching.addresses import PinnedTransport
from worker.fetching.deadline import Deadline
from worker.fetching.errors import (
    FetchError,
    ReferenceDenied,
    ReferenceForbidden,
    ReferenceInvalid,
    ReferenceMissing,
    SourceTooSlow,
    SourceUnavailable,
)
from worker.fetching.policy import FetchPolicy
from worker.fetching.source import ReferenceSource, SourceContent

MAX_REDIRECTS = 5
CHUNK_BYTES = 1 << 18
"""Bytes handed on at a time: enough for the disk, little enough to notice a cancelled job soon."""

_ENCODINGS = ("", "identity", "gzip", "deflate")
"""How a server may pack what it sends; some do although it is not asked for."""
_ENDINGS = {
    "text/html": ".html",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "application/json": ".json",
    "application/jsonl": ".jsonl",
    "application/x-ndjson": ".jsonl",
    "application/vnd.apache.parquet": ".parquet",
}
_NOT_MODIFIED = 304
_DENIED = (401, 403, 407)
_MISSING = (404, 410)
_TRY_AGAIN = (408, 425, 429)
_FIRST_SERVER_ERROR = 500


class HttpSource(ReferenceSource):
    """A URL, which cannot be listed: of a file, or of a directory whose files are asked for by name."""

    @contextmanager
    def open(self, name: str | None, known: str | None) -> Iterator[SourceContent | None]:
        parts = urlsplit(self._reference.uri)
        path = parts.path if name is None else f"{parts.path.rstrip('/')}/{quote(name)}"
        url = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
        shown = self._reference.shown if name is None else f"{self._reference.shown.rstrip('/')}/{name}"
        with open_url(url, shown, self._policy, known=known) as content:
            yield content


@contextmanager
def open_url(
    url: str, shown: str, policy: FetchPolicy, *, known: str | None = None, headers: Mapping[str, str] | None = None
) -> Iterator[SourceContent | None]:
    """Start to read a URL; gives None if the server says that the ``known`` version is still current.

    Args:
        url: an ``http`` or ``https`` URL.
        shown: how messages name it.
        policy: where it may lead.
        known: a version given by an earlier ``SourceContent``.
        headers: sent to the URL's own host and dropped where it redirects elsewhere.
    """
    timeout = httpx2.Timeout(policy.read_seconds, connect=policy.connect_seconds)
    with (
        Deadline(policy.file_seconds) as deadline,
        httpx2.Client(transport=PinnedTransport(policy), timeout=timeout, trust_env=False) as client,
        _as_fetch_errors(shown, deadline),
    ):
        asked = {"Accept": "*/*", "Accept-Encoding": "identity", **(headers or {}), **_condition(known)}
        extensions = {"trace": deadline.trace}
        response = _follow(client, client.build_request("GET", url, headers=asked, extensions=extensions), shown)
        try:
            if known and response.status_code == _NOT_MODIFIED:
                yield None
            else:
                _check_status(response, shown)
                chunks, length = _chunks(response, shown, deadline), _length(response)
                yield SourceContent(chunks, length, _version(response), _name(response))
        finally:
            response.close()


def _follow(client: httpx2.Client, request: httpx2.Request, shown: str) -> httpx2.Response:
    for _ in range(MAX_REDIRECTS + 1):
        response = client.send(request, stream=True)
        following = response.next_request
        if following is None:
            return response
        response.close()
        if request.url.scheme == "https" and following.url.scheme != "https":
            raise ReferenceForbidden(f"'{shown}' redirects from https to {following.url.scheme}; use its final address")
        request = following
    raise ReferenceInvalid(f"'{shown}' redirects more than {MAX_REDIRECTS} times; use its final address")


def _check_status(response: httpx2.Response, shown: str) -> None:
    status = response.status_code
    if status in _MISSING:
        raise ReferenceMissing(f"nothing is found at '{shown}' (status {status}); check the address")
    if status in _DENIED:
        raise ReferenceDenied(
            f"'{shown}' refuses access (status {status}); use a public or signed address, or upload it"
        )
    if status in _TRY_AGAIN or status >= _FIRST_SERVER_ERROR:
        raise SourceUnavailable(f"'{shown}' cannot be read now (status {status}); try again later")
    if not response.is_success:
        raise ReferenceInvalid(f"'{shown}' answers with status {status} instead of a file; check the address")
    packing = response.headers.get("Content-Encoding", "")
    if packing.lower() not in _ENCODINGS:
        raise ReferenceInvalid(f"'{shown}' comes packed with {packing}, which is not read; have it sent as it is")


def _chunks(response: httpx2.Response, shown: str, deadline: Deadline) -> Iterator[bytes]:
    """What the server sends, as it comes: pieces of a wished size would be waited for, however slowly they fill."""
    with _as_fetch_errors(shown, deadline):
        yield from response.iter_bytes()
        if deadline.is_over:
            raise _too_slow(shown)


def _length(response: httpx2.Response) -> int | None:
    text = "" if response.headers.get("Content-Encoding") else response.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() else None


def _name(response: httpx2.Response) -> str:
    """The name of the file, or an ending for its media type; empty if the headers tell neither."""
    told = Message()
    for name in ("Content-Disposition", "Content-Type"):
        told[name] = response.headers.get(name, "")
    return told.get_filename() or _ENDINGS.get(told.get_content_type(), "")


def _version(response: httpx2.Response) -> str | None:
    for name in ("ETag", "Last-Modified"):
        if value := response.headers.get(name):
            return f"{name}: {value}"
    return None


def _condition(known: str | None) -> dict[str, str]:
    if known is None:
        return {}
    name, _, value = known.partition(": ")
    return {"If-None-Match" if name == "ETag" else "If-Modified-Since": value}


@contextmanager
def _as_fetch_errors(shown: str, deadline: Deadline) -> Iterator[None]:
    try:
        yield
    except FetchError:
        raise
    except httpx2.TransportError as error:
        raise (_too_slow(shown) if deadline.is_over else _unavailable(shown, error)) from error
    except httpx2.DecodingError as error:
        raise ReferenceInvalid(
            f"'{shown}' comes packed, and cannot be unpacked ({error}); have it sent as it is"
        ) from error
    except (httpx2.InvalidURL, httpx2.HTTPError) as error:
        raise ReferenceInvalid(f"'{shown}' is not an address that can be read: {error}; check it") from error


def _unavailable(shown: str, error: httpx2.TransportError) -> SourceUnavailable:
    if isinstance(error, httpx2.TimeoutException):
        return SourceUnavailable(f"'{shown}' did not answer in time ({type(error).__name__}); try again later")
    return SourceUnavailable(f"'{shown}' cannot be read: {error}; check the address or try again later")


def _too_slow(shown: str) -> SourceTooSlow:
    return SourceTooSlow(f"'{shown}' takes too long to read; use a faster source")
