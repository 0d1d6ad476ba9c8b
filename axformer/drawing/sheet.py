"""The style sheet of all pictures: every class with its look on light and dark backgrounds.

Dark styles apply to dark screens only, so that paper stays white. Rules begin with ``svg``, because a picture may be embedded
in a page, where a style sheet applies to everything.
"""

from axformer.drawing.marks import ACCENT, CURVES, GOOD, KEPT, OPEN, QUIET, SOFT, UNTRIED, Colour

_CARD = Colour("#ffffff", "#15171c")
_LINE = Colour("#d0d7de", "#30363d")
_GRID = Colour("#e6e9ed", "#21262d")
_INK = Colour("#1f2328", "#e6edf3")
_FAINT = Colour("#59636e", "#9198a1")

_CLASSES: dict[str, tuple[str, tuple[Colour, ...]]] = {
    # Shared by all pictures.
    "ground": ("fill:{};stroke:{}", (_CARD, _LINE)),
    "ink": ("fill:{}", (_INK,)),
    "faint": ("fill:{}", (_FAINT,)),
    "grid": ("stroke:{}", (_GRID,)),
    "base": ("stroke:{};stroke-dasharray:6 4;fill:none", (SOFT,)),
    # Trials.
    "least": ("stroke:{};stroke-width:2;stroke-linejoin:round;fill:none", (ACCENT,)),
    "accept": ("fill:{};stroke:{}", (GOOD, _CARD)),
    "refine": ("stroke:{};stroke-width:1.5;fill:{}", (OPEN, _CARD)),
    "reject": ("fill:none;stroke:{};stroke-width:5;stroke-linecap:round", (QUIET,)),
    "bound": ("fill:none;stroke:{};stroke-width:1.5;stroke-linecap:round", (QUIET,)),
    "band": ("fill:{}", (_GRID,)),
    "veil": ("fill:{};opacity:.72;pointer-events:none", (_CARD,)),
    "kept-line": ("stroke:{};stroke-width:1.5;fill:none;pointer-events:none", (GOOD,)),
    # Models on a path.
    "ring": ("stroke:{};stroke-width:2;fill:none", (GOOD,)),
    **{
        name: ("stroke:{};stroke-width:2;stroke-linejoin:round;fill:none", (colour,))
        for name, colour in (("test", ACCENT), ("confirming", OPEN), ("deciding", SOFT))
    },
    **{
        f"{name}-point": ("fill:{};stroke:{}", (colour, _CARD))
        for name, colour in (("test", ACCENT), ("confirming", OPEN), ("deciding", SOFT))
    },
    "beaten": ("opacity:.35", ()),
    # Elements.
    "kept": ("fill:{}", (KEPT,)),
    "opened": ("fill:{}", (OPEN,)),
    "hard": ("fill:{}", (ACCENT,)),
    "untried": ("fill:{}", (UNTRIED,)),
    "gone": ("fill:{};stroke:{};stroke-width:1.2;stroke-dasharray:3 2", (_CARD, GOOD)),
    "gap": ("fill:{}", (_CARD,)),
    # Matrices.
    "heat": ("fill:{}", (ACCENT,)),
    "on-heat": ("fill:{}", (_CARD,)),
    # Jobs side by side.
    **{f"curve-{number}": ("stroke:{};stroke-width:2;fill:none", (colour,)) for number, colour in enumerate(CURVES)},
    **{f"letter-{number}": ("fill:{};font-weight:600", (colour,)) for number, colour in enumerate(CURVES)},
}
_TEXT = (
    'svg text{font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;font-variant-numeric:tabular-nums}'
    "svg text.title{font-size:14px;font-weight:600}"
    "svg.drawn{max-width:100%;height:auto}"
)


def _rules(side: str) -> str:
    return "".join(
        f"svg .{name}{{{look.format(*(getattr(colour, side) for colour in colours))}}}"
        for name, (look, colours) in _CLASSES.items()
    )


SHEET = f"{_TEXT}{_rules('light')}@media screen and (prefers-color-scheme:dark){{{_rules('dark')}}}"
"""CSS, for a file that holds one picture and for a page that holds several."""
