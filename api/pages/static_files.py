"""Style sheet and scripts of the pages, at an address that contains the hash of all of them.

The content of such an address never changes, so browsers cache it for a year; a new version of any file has another address.
The files are few and take 2 MB, so they are read once, and no path of a request reaches the disk.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from api.errors import NotFoundError
from axformer.drawing.sheet import SHEET

_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_SWAGGER_UI = ("swagger-ui-bundle.js", "swagger-ui.css")
_DIGEST_LENGTH = 12  # hexadecimal digits; tells versions apart
FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class StaticFiles:
    """All files by name, and the digest of this version."""

    files: Mapping[str, bytes]
    digest: str

    def url(self, name: str) -> str:
        """Where the file is."""
        assert name in self.files, f"there is no {name}"
        return f"/static/{self.digest}/{name}"

    def find(self, digest: str, name: str) -> tuple[bytes, str]:
        """A file with its media type.

        Raises:
            NotFoundError: there is none of this name, or another version is served.
        """
        if digest != self.digest or name not in self.files:
            raise NotFoundError(f"there is no file '{name}' in version '{digest}'; load the page again")
        return self.files[name], _MEDIA_TYPES[name[name.rindex(".") :]]


def read_static_files() -> StaticFiles:
    """Read them all."""
    folder = resources.files("api.pages") / "static"
    files = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(tuple(_MEDIA_TYPES))}
    files |= {name: (resources.files("fastapi_offline") / "static" / name).read_bytes() for name in _SWAGGER_UI}
    files["pictures.css"] = SHEET.encode()
    digest = hashlib.sha256(b"\0".join(part for name in sorted(files) for part in (name.encode(), files[name])))
    return StaticFiles(files, digest.hexdigest()[:_DIGEST_LENGTH])
