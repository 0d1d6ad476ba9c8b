"""References to checkpoints and data, as written in a job, taken apart once.

| scheme             | checkpoint                          | data                                    |
|--------------------|-------------------------------------|-----------------------------------------|
| ``https://``       | a directory's or an archive's URL   | a file's URL                            |
| ``file://``        | an absolute path under a root that the operator has opened                    |
| ``hf://``          | ``hf://org/name[@revision]``        | ``hf://datasets/org/name[@rev]/path``   |
| ``s3://``          | ``s3://bucket/prefix``              | ``s3://bucket/key``                     |
| ``upload:<id>``    | an uploaded archive                 | an uploaded file                        |
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import SplitResult, unquote, urlsplit

from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils._validators import validate_repo_id

from worker.fetching.errors import ReferenceInvalid

_UPLOAD = re.compile(r"upload:(?P<id>[A-Za-z0-9_-]{1,64})")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""Names of buckets. Other things that clients take for one, such as ARNs, lead to other hosts."""
_HUB_MODEL = re.compile(r"hf://(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[^@]+))?")
_HUB_DATASET = re.compile(r"hf://datasets/(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[^@/]+))?/(?P<path>.+)")


class Scheme(StrEnum):
    """Where a reference points."""

    HTTP = "http"
    HTTPS = "https"
    FILE = "file"
    HUB = "hf"
    S3 = "s3"
    UPLOAD = "upload"


@dataclass(frozen=True)
class Reference:
    """A reference taken apart. What ``place``, ``path`` and ``revision`` hold depends on the scheme."""

    uri: str
    scheme: Scheme
    place: str
    """The host of a URL, the bucket, the hub's repository, or the id of the upload; empty for ``file``."""
    path: str
    """The path in that place, percent-decoded; for URLs it only serves to name the file."""
    revision: str | None = None
    """The hub's revision, where one is given."""

    @property
    def shown(self) -> str:
        """The reference as it may be logged and shown: without query string and fragment."""
        return self.uri.partition("?")[0].partition("#")[0]

    @property
    def filename(self) -> str:
        """The last part of the path; empty for a directory or a repository."""
        return self.path.rpartition("/")[2]


def parse_reference(uri: str) -> Reference:
    """Take a reference apart.

    Raises:
        ReferenceInvalid: its scheme is unknown or its form is not that of its scheme.
    """
    scheme = uri.partition(":")[0].lower()
    if scheme not in list(Scheme):
        schemes = "https://, hf://, s3://, file:// or upload:"
        raise ReferenceInvalid(f"reference '{_bare(uri)}' has no known scheme; use {schemes}")
    match Scheme(scheme):
        case Scheme.HUB:
            return _hub(uri)
        case Scheme.UPLOAD:
            found = _UPLOAD.fullmatch(uri)
            if not found:
                raise ReferenceInvalid(
                    f"reference '{_bare(uri)}' is no upload; write upload:ID with the id you were given"
                )
            return Reference(uri, Scheme.UPLOAD, found["id"], "")
        case known:
            return _url(uri, known)


def _url(uri: str, scheme: Scheme) -> Reference:
    try:
        parts = urlsplit(uri)
        place = _place(parts, scheme)
    except ValueError as error:
        raise ReferenceInvalid(f"reference '{_bare(uri)}' is not a URL: {error}") from None
    if "@" in parts.netloc:
        raise ReferenceInvalid(f"reference to '{parts.hostname}' holds a user name or password; leave them out")
    path = unquote(parts.path)
    if "\0" in path:
        raise ReferenceInvalid(f"reference '{_bare(uri)}' holds a zero byte")
    return Reference(uri, scheme, place, path)


def _place(parts: SplitResult, scheme: Scheme) -> str:
    if scheme is Scheme.FILE:
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise ValueError("a file is written file:///absolute/path")
        return ""
    _ = parts.port  # raises ValueError where it is not a number
    if not parts.hostname:
        raise ValueError("it names no bucket" if scheme is Scheme.S3 else "it names no host")
    if scheme is not Scheme.S3:
        return parts.hostname
    if not _BUCKET.fullmatch(parts.netloc):
        raise ValueError("buckets are named with 3 to 63 small letters, digits, dots and hyphens")
    return parts.netloc


def _hub(uri: str) -> Reference:
    if uri.startswith("hf://datasets/"):
        found, form = _HUB_DATASET.fullmatch(uri), "hf://datasets/ORG/NAME[@REVISION]/PATH"
    else:
        found, form = _HUB_MODEL.fullmatch(uri), "hf://ORG/NAME[@REVISION]"
    if not found:
        raise ReferenceInvalid(f"reference '{_bare(uri)}' is not of the form {form}")
    parts = found.groupdict()
    if not _is_repository(parts["repo"]) or ".." in uri.split("/"):  # which could lead to another part of the hub
        raise ReferenceInvalid(f"reference '{_bare(uri)}' names no repository or file of the hub; write {form}")
    revision = unquote(parts["revision"]) if parts["revision"] else None
    return Reference(uri, Scheme.HUB, parts["repo"], parts.get("path") or "", revision)


def _is_repository(name: str) -> bool:
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def _bare(uri: str) -> str:
    """What of a reference that could not be taken apart may be shown: no query, and no password before an ``@``."""
    return re.sub(r"//[^/@]*@", "//", uri.partition("?")[0])
