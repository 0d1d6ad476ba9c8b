"""What all pictures of a pass share: a ground of their own, a style sheet for light, dark and print, a name for screen readers.

Colours are classes. Dark ones hold on dark screens alone, so that paper stays white. Rules begin with ``svg``, because a
picture may stand in the middle of a page, where a style sheet counts for everything.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

_FONT = (
    'svg text{font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}'
    "svg text.title{font-size:14px;font-weight:600}"
)
_SHARED = {
    "ground": ("fill:#fff;stroke:#d0d7de", "fill:#0d1117;stroke:#30363d"),
    "ink": ("fill:#1f2328", "fill:#e6edf3"),
    "faint": ("fill:#59636e", "fill:#9198a1"),
}


@dataclass(frozen=True)
class Canvas:
    """The frame of one picture."""

    name: str
    """Tells its ids from those of other pictures on the same page."""
    title: str
    summary: str
    """The picture in words."""
    width: int
    """Units, as many pixels where there is room."""
    height: int
    shades: Mapping[str, tuple[str, str]]
    """Declarations of each class, for light and for dark grounds."""

    def drawn(self, lines: Iterable[str]) -> str:
        """The text of the whole SVG file around what is drawn."""
        title, summary = f"{self.name}-title", f"{self.name}-summary"
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
                f'height="{self.height}" role="img" aria-labelledby="{title} {summary}" style="max-width:100%;height:auto">',
                f'<title id="{title}">{escape(self.title)}</title>',
                f'<desc id="{summary}">{escape(self.summary)}</desc>',
                f"<style>{_style(_SHARED | dict(self.shades))}</style>",
                f'<rect class="ground" x=".5" y=".5" width="{self.width - 1}" height="{self.height - 1}" rx="8"/>',
                *lines,
                "</svg>",
                "",
            ]
        )


def words(x: float, y: float, text: str, shade: str, anchor: str = "start") -> str:
    """A line of text, its base line at ``y``."""
    return f'<text class="{shade}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _style(shades: Mapping[str, tuple[str, str]]) -> str:
    light, dark = (
        "".join(f"svg .{name}{{{declarations[side]}}}" for name, declarations in shades.items()) for side in (0, 1)
    )
    return f"{_FONT}{light}@media screen and (prefers-color-scheme:dark){{{dark}}}"
