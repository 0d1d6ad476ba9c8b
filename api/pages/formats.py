"""Template filters that format figures for people. Unknown values become a dash."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from axformer.wire.metrics import in_words

UNKNOWN = "–"
_COLUMNS_OPTION = re.compile(r"--columns (\S+)")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_UNITS = {"B": 10**9, "M": 10**6, "k": 10**3}
_SIZES = {"GB": 10**9, "MB": 10**6, "kB": 10**3}


def count(value: float | None) -> str:
    """A number with separated thousands."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def short_count(value: float | None) -> str:
    """A number to three digits: 22.7 M."""
    return _to_three_digits(value, _UNITS, "")


def size(value: float | None) -> str:
    """Bytes to three digits."""
    return _to_three_digits(value, _SIZES, " B")


def _to_three_digits(value: float | None, units: Mapping[str, int], alone: str) -> str:
    if value is None:
        return UNKNOWN
    unit = next((unit for unit, least in units.items() if abs(value) >= least), None)
    return f"{value:.0f}{alone}" if unit is None else f"{value / units[unit]:.3g} {unit}"


def duration(seconds: float | None) -> str:
    """Seconds in the two largest units that matter: 1 h 20 min."""
    if seconds is None:
        return UNKNOWN
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    for unit, smaller, length, part in (
        ("min", "s", _MINUTE, 1),
        ("h", "min", _HOUR, _MINUTE),
        ("d", "h", _DAY, _HOUR),
    ):
        if whole < length * (24 if unit == "h" else 60) or unit == "d":
            first, rest = divmod(whole, length)
            return f"{first} {unit}" + (f" {rest // part} {smaller}" if rest // part else "")
    raise AssertionError("the last unit takes all")


def loss(value: float | None) -> str:
    """A loss to four decimals."""
    return UNKNOWN if value is None else f"{value:.4f}"


def percent(share: float | None) -> str:
    """A share as per cent."""
    return UNKNOWN if share is None else f"{100 * share:.1f} %"


def change(before: float | None, after: float | None) -> str:
    """The change of a figure in per cent."""
    if before is None or after is None or before == 0:
        return UNKNOWN
    return f"{100 * (after - before) / before:+.1f} %"


def figure(value: Any) -> str:
    """Any value of a knob or report in a few letters."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(map(str, value)) or UNKNOWN if isinstance(value, list | tuple) else str(value)


def words(name: str) -> str:
    """An identifier as words."""
    return in_words(name)


def on_page(message: str) -> str:
    """A message of the library, whose remedies are options of the commands, in words of the pages."""
    return _COLUMNS_OPTION.sub(r"\1 under Columns", message)


def prose(text: str) -> Markup:
    """A sentence from a docstring, with the code between backticks marked up."""
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part
        for place, part in enumerate(re.split("`{1,2}", text))
    )


def moment(at: datetime | None) -> Markup | str:
    """A time, which a script of the page rewrites as how long ago it was."""
    if at is None:
        return UNKNOWN
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}">{} UTC</time>').format(
        utc.isoformat(timespec="seconds"), utc.strftime("%Y-%m-%d %H:%M")
    )
