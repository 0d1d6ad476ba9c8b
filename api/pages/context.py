"""Resources shared by the pages of an app: templates, static files, and the seal of the cookies."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from inspect import isfunction
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from api.errors import NoSuchObjectError
from api.pages import formats
from api.pages.session import Seal
from axformer import __version__
from axformer.data.formats import ENDINGS
from axformer.drawing.lines import loss_curve
from axformer.drawing.marks import MARKS
from axformer.drawing.sheet import SHEET
from axformer.drawing.svg import inline
from axformer.plan.elements import label_of
from axformer.reporting.markdown import shown_in_html
from axformer.wire.finetuning import LossPoint
from store.settings import Settings
from store.signing import signing_keys

_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_SWAGGER_UI = ("swagger-ui-bundle.js", "swagger-ui.css")
_DIGEST_LENGTH = 12  # hexadecimal digits; tells versions apart
FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class StaticFiles:
    """Style sheets and scripts by name, and the digest of this version, which is a part of their addresses.

    The content of an address never changes, so browsers cache it for a year. The files are few and take 2 MB, so they are
    read once, and no path of a request reaches the disk.
    """

    files: Mapping[str, bytes]
    digest: str

    def url(self, name: str) -> str:
        """Where the file is."""
        assert name in self.files, f"there is no {name}"
        return f"/static/{self.digest}/{name}"

    def find(self, digest: str, name: str) -> tuple[bytes, str]:
        """A file with its media type.

        Raises:
            NoSuchObjectError: there is none of this name, or another version is served.
        """
        if digest != self.digest or name not in self.files:
            raise NoSuchObjectError(f"there is no file '{name}' in version '{digest}'; load the page again")
        return self.files[name], _MEDIA_TYPES[name[name.rindex(".") :]]


def read_static_files() -> StaticFiles:
    """Read them all."""
    folder = resources.files("api.pages") / "static"
    files = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(tuple(_MEDIA_TYPES))}
    files |= {name: (resources.files("fastapi_offline") / "static" / name).read_bytes() for name in _SWAGGER_UI}
    files["pictures.css"] = SHEET.encode()
    digest = hashlib.sha256(b"\0".join(part for name in sorted(files) for part in (name.encode(), files[name])))
    return StaticFiles(files, digest.hexdigest()[:_DIGEST_LENGTH])


PAGE_HEADERS = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    ),
    # With no-referrer, browsers hide the origin of a form, by which it is known to be our own.
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_FILTERS = {
    name: one
    for name, one in vars(formats).items()
    if isfunction(one) and one.__module__ == formats.__name__ and not name.startswith("_")
}
"""Every function of that module."""


def _losses(curve: Sequence[LossPoint]) -> Markup:
    """The curve of a training's losses; empty until there is one."""
    return Markup(inline(loss_curve(curve) or ""))  # noqa: S704 - made of numbers


@dataclass
class Pages:
    """Templates, static files and the seal."""

    settings: Settings
    static: StaticFiles = field(default_factory=read_static_files)

    @cached_property
    def seal(self) -> Seal:
        """The seal, created at its first use, since its key may lie in a file."""
        return Seal(signing_keys(self.settings), int(self.settings.page_session_hours * 3600))

    @cached_property
    def environment(self) -> Environment:
        """The template environment, which escapes all values."""
        made = Environment(
            finalize=shown_in_html,
            loader=PackageLoader("api.pages"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        made.filters.update(_FILTERS, label=label_of, losses=_losses)
        made.globals.update(static=self.static.url, marks=MARKS, version=__version__, data_endings=",".join(ENDINGS))
        return made

    def text(self, template: str, **values: Any) -> str:
        """Render a template as text."""
        return self.environment.get_template(template).render(**values)

    def answer(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """Render a template as a page."""
        return HTMLResponse(self.text(template, **values), status, headers=PAGE_HEADERS)
