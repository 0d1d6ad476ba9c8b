"""The templates of card and page, their tables, and the passages that they share with ``report.json``.

A passage is plain text, so the page, which is HTML, and the card, which is Markdown, escape it like any other value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from axformer.reporting.markdown import Markdown, fenced, in_markdown, mono, shown_in_html, strong, word

_TEMPLATES = Environment(
    loader=PackageLoader("axformer.reporting"),
    autoescape=select_autoescape(["html"]),
    finalize=shown_in_html,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_MACROS = '{% from "words.jinja" import trained, condition, helped, fitted_to_whole %}'
"""What the passages of a method may use (:class:`axformer.config.common.About`)."""
_PASSAGES = _TEMPLATES.get_template("words.jinja").module


def code(text: str) -> Markup:
    """A passage for the page: what stands between backticks is set as code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - all but the tag is escaped


_TEMPLATES.filters |= {
    "code": code,
    "fenced": fenced,
    "markdown": Markdown,
    "mono": mono,
    "strong": strong,
    "word": word,
}
_MARKDOWN = _TEMPLATES.overlay(finalize=in_markdown)


def render(template: str, **values: Any) -> str:
    """Render a template; values are text, and are escaped as its suffix asks."""
    templates = _MARKDOWN if template.endswith(".md") else _TEMPLATES
    return templates.get_template(template).render(**values)


def passage(name: str, *values: Any) -> str:
    """Render a passage of ``words.jinja`` on one line."""
    return " ".join(str(getattr(_PASSAGES, name)(*values)).split())


def passage_from(source: str, **values: Any) -> str:
    """Render a passage that is not in ``words.jinja`` itself but uses its macros, on one line."""
    return " ".join(_TEMPLATES.from_string(_MACROS + source).render(**values).split())


UNKNOWN = "–"
"""In place of a figure that there is none of."""


@dataclass(frozen=True)
class Table:
    """Text cells, which the card renders as Markdown and the page as HTML; every row is as long as the head."""

    head: list[str]
    rows: list[list[str]]

    def markdown(self) -> Markdown:
        """The table in Markdown, each cell as text."""
        head, *rows = (list(map(in_markdown, cells)) for cells in (self.head, *self.rows))
        above, *below = (f"| {' | '.join(cells)} |" for cells in (head, *rows))
        return Markdown("\n".join([above, f"|{'---|' * len(head)}", *below]))


def number(value: float | None, form: str, scale: float = 1) -> str:
    """A figure as text, in units of 1 / ``scale``; a dash if there is none."""
    return UNKNOWN if value is None else format(value * scale, form)


def made_with(environment: Mapping[str, Any], figures: Mapping[str, str]) -> Table:
    """What produced a report: versions and hardware, and more figures."""
    known = {name: "unknown" if value is None else str(value) for name, value in environment.items()}
    return Table(["made with", "which"], [[name, value] for name, value in {**known, **figures}.items()])
