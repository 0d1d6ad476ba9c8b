"""References to checkpoints and data as far as they can be judged before a worker fetches them.

The worker judges again, with the address resolved; here the caller is told at once what can never work.
"""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from api.errors import FieldError, InvalidInputError
from store.settings import Settings

UPLOAD_SCHEME = "upload"
_SCHEMES = ("https", "hf", "s3", "file", UPLOAD_SCHEME)
_HUB_MODEL = re.compile(r"hf://[\w.-]+/[\w.-]+(@[^@]+)?")
_HUB_DATASET = re.compile(r"hf://datasets/[\w.-]+/[\w.-]+(@[^@/]+)?/.+")
_UPLOAD = re.compile(r"upload:upl_[0-9a-f]{32}")


def check_reference(uri: str, pointer: str, *, is_checkpoint: bool, settings: Settings) -> None:
    """Refuse a reference that cannot work. ``pointer`` says where in the body it stands.

    Raises:
        InvalidInputError: unknown scheme, malformed, or a file outside of the opened roots.
    """
    scheme = uri.partition(":")[0].lower()
    if scheme not in _SCHEMES and not (scheme == "http" and settings.fetch_plain_http):
        raise refused(uri, pointer, "has no scheme that is fetched; use https://, hf://, s3://, file:/// or upload:ID")
    if scheme == UPLOAD_SCHEME:
        _check_upload(uri, pointer)
    elif scheme == "hf":
        _check_hub(uri, pointer, is_checkpoint=is_checkpoint)
    else:
        _check_url(uri, pointer, scheme, settings.file_roots)


def _check_url(uri: str, pointer: str, scheme: str, roots: tuple[Path, ...]) -> None:
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise refused(uri, pointer, f"is not a URL: {error}") from None
    if "@" in parts.netloc:
        raise refused(uri, pointer, "holds a user name or password; leave them out")
    if scheme == "file":
        _check_file(uri, pointer, parts.netloc, unquote(parts.path), roots)
    elif not host:
        raise refused(uri, pointer, "names no bucket" if scheme == "s3" else "names no host")


def refused(uri: str, pointer: str, why: str) -> InvalidInputError:
    """The error for a reference; ``why`` goes on after "reference 'x'"."""
    detail = f"reference '{shown(uri)}' {why}"
    return InvalidInputError(detail, code="invalid_reference", errors=[FieldError(detail, pointer=pointer)])


def shown(uri: str) -> str:
    """The reference as it may be shown: no password, and no query, which may hold a signature."""
    bare, question, _ = re.sub(r"//[^/@]*@", "//", uri).partition("?")
    return f"{bare}?…" if question else bare


def _check_upload(uri: str, pointer: str) -> None:
    if not _UPLOAD.fullmatch(uri):
        raise refused(uri, pointer, "is no upload; write upload:ID with the id that POST /v1/uploads gave you")


def _check_hub(uri: str, pointer: str, *, is_checkpoint: bool) -> None:
    form, pattern = ("hf://ORG/NAME[@REVISION]", _HUB_MODEL)
    if not is_checkpoint:
        form, pattern = ("hf://datasets/ORG/NAME[@REVISION]/PATH", _HUB_DATASET)
    if not pattern.fullmatch(uri):
        raise refused(uri, pointer, f"is not of the form {form}")


def _check_file(uri: str, pointer: str, netloc: str, path: str, roots: tuple[Path, ...]) -> None:
    if netloc not in ("", "localhost") or not path.startswith("/"):
        raise refused(uri, pointer, "is not a file; write file:///absolute/path")
    if "\0" in path:
        raise refused(uri, pointer, "holds a zero byte")
    resolved = Path(path).resolve()
    if not any(resolved.is_relative_to(root) for root in roots):
        opened = ", ".join(map(str, roots)) or "none"
        raise refused(uri, pointer, f"lies outside of the directories opened for file://, which are: {opened}")
