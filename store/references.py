"""Parse references to checkpoints and data, as written in a job.

The API checks what can be checked before fetching; the worker fetches.

| scheme             | checkpoint                          | data                                    |
|--------------------|-------------------------------------|-----------------------------------------|
| ``https://``       | a directory's or an archive's URL   | a file's URL; ``#NAME`` may name it     |
| ``file://``        | an absolute path under a root that the operator has opened                    |
| ``hf://``          | ``hf://org/name[@revision]``        | ``hf://datasets/org/name[@rev]/path``   |
| ``s3://``          | ``s3://bucket/prefix``              | ``s3://bucket/key``                     |
| ``upload:<id>``    | an uploaded archive                 | an uploaded file                        |
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import SplitResult, unquote, urlsplit

from axformer.data.formats import data_suffix, why_not_data
from axformer.intake.references import what_to_write
from axformer.wire.references import tidy
from store.errors import ReferenceFormError
from store.storage.archives import ARCHIVE_SUFFIXES

UPLOAD_PREFIX, HUB_PREFIX = "upload:", "hf://"
_UPLOAD = re.compile(r"upload:(?P<id>upl_[0-9a-f]{1,32})")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""Bucket names. Other forms that clients accept, such as ARNs, lead to other hosts."""
_REPO = r"(?P<repo>\b[\w.-]{1,96}\b/\b[\w.-]{1,96}\b)"
"""A repository of the hub, as the hub's own library accepts it; see :func:`_is_repository`."""
_HUB_MODEL = re.compile(rf"hf://(?!datasets/){_REPO}(?:@(?P<revision>[^@]+))?", re.ASCII)
_HUB_DATASET = re.compile(rf"hf://datasets/{_REPO}(?:@(?P<revision>[^@/]+))?/(?P<path>.+)", re.ASCII)


class Scheme(StrEnum):
    """Where a reference points."""

    HTTP = "http"
    HTTPS = "https"
    FILE = "file"
    HUB = "hf"
    S3 = "s3"
    UPLOAD = "upload"


@dataclass(frozen=True)
class ParsedReference:
    """A parsed reference. The meaning of ``place``, ``path`` and ``revision`` depends on the scheme."""

    uri: str
    scheme: Scheme
    place: str
    """The host of a URL, the bucket, the hub's repository, or the id of the upload; empty for ``file``."""
    path: str
    """The path in that place, percent-decoded; for URLs it only serves to name the file."""
    revision: str | None = None
    """The hub revision, if one is given."""

    @property
    def shown(self) -> str:
        """The reference as it may be logged and shown: without query string and fragment."""
        return self.uri.partition("?")[0].partition("#")[0]

    @property
    def filename(self) -> str:
        """The last part of the path; empty for a directory or a repository."""
        return self.path.rpartition("/")[2]


def shown(uri: str) -> str:
    """Any reference as it may be shown: no password, and no query, which may hold a signature."""
    bare, question, _ = re.sub(r"//[^/@]*@", "//", uri).partition("?")
    return f"{bare}?…" if question else bare


def parse_reference(uri: str, *, is_checkpoint: bool) -> ParsedReference:
    """Parse the reference of a checkpoint or of data.

    Raises:
        ReferenceFormError: its scheme is unknown or its form is not that of its scheme.
    """
    uri = tidy(uri)
    if better := what_to_write(uri, is_checkpoint=is_checkpoint):
        raise _refused(uri, better)
    scheme = uri.partition(":")[0]
    if scheme not in list(Scheme):
        raise _refused(uri, "has no scheme that is fetched; use https://, hf://, s3://, file:/// or upload:ID")
    parsed = _parsed(uri, Scheme(scheme), is_checkpoint=is_checkpoint)
    names_itself = scheme in (Scheme.S3, Scheme.FILE, Scheme.HUB)
    if names_itself and not is_checkpoint and data_suffix(parsed.filename) is None:
        raise _refused(uri, why_not_data(parsed.filename))
    return parsed


def _parsed(uri: str, scheme: Scheme, *, is_checkpoint: bool) -> ParsedReference:
    match scheme:
        case Scheme.HUB:
            return _hub(uri, is_checkpoint=is_checkpoint)
        case Scheme.UPLOAD:
            upload = _UPLOAD.fullmatch(uri)
            if not upload:
                raise _refused(uri, "is not an upload; write upload:ID with the id that POST /v1/uploads gave you")
            return ParsedReference(uri, Scheme.UPLOAD, upload["id"], "")
        case known:
            return _url(uri, known)


def _refused(uri: str, why: str) -> ReferenceFormError:
    return ReferenceFormError(f"reference '{shown(uri)}' {why}")


def _url(uri: str, scheme: Scheme) -> ParsedReference:
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port  # raises ValueError where it is not a number
    except ValueError as error:
        raise _refused(uri, f"is not a URL: {error}") from None
    if "@" in parts.netloc:
        raise _refused(uri, "holds a user name or password; leave them out")
    place, path = _place(uri, parts, host, scheme), unquote(parts.path)
    if data_suffix(parts.fragment) or parts.fragment.lower().endswith(ARCHIVE_SUFFIXES):
        path = f"/{parts.fragment}"  # the name that the address itself does not tell
    if "\0" in path:
        raise _refused(uri, "holds a zero byte")
    return ParsedReference(uri, scheme, place, path)


def _place(uri: str, parts: SplitResult, host: str | None, scheme: Scheme) -> str:
    if scheme is Scheme.FILE:
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise _refused(uri, "is not a file; write file:///absolute/path")
        return ""
    if not host:
        raise _refused(uri, "names no bucket" if scheme is Scheme.S3 else "names no host")
    if scheme is not Scheme.S3:
        return host
    if not _BUCKET.fullmatch(parts.netloc):
        raise _refused(uri, "names no bucket; buckets have 3 to 63 small letters, digits, dots and hyphens")
    if not parts.path.strip("/"):
        raise _refused(uri, "names no key; write s3://BUCKET/PREFIX for a checkpoint, s3://BUCKET/KEY for data")
    return parts.netloc


def _hub(uri: str, *, is_checkpoint: bool) -> ParsedReference:
    pattern, form = _HUB_DATASET, "hf://datasets/ORG/NAME[@REVISION]/PATH"
    if is_checkpoint:
        pattern, form = _HUB_MODEL, "hf://ORG/NAME[@REVISION]"
    match = pattern.fullmatch(uri)
    if not match:
        raise _refused(uri, f"is not of the form {form}")
    parts = match.groupdict()
    if not _is_repository(parts["repo"]) or ".." in uri.split("/"):  # which could lead to another part of the hub
        raise _refused(uri, f"names no repository or file of the hub; write {form}")
    revision = unquote(parts["revision"]) if parts["revision"] else None
    return ParsedReference(uri, Scheme.HUB, parts["repo"], parts.get("path") or "", revision)


def _is_repository(name: str) -> bool:
    return "--" not in name and ".." not in name and not name.endswith(".git")
