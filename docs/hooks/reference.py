"""Writes the routes into ``api.md`` from the service's own OpenAPI document, so that the page cannot say anything else."""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

PLACE = "<!-- routes -->"
_LONGEST = 40
"""Lines of an example; longer ones are cut, the document itself has them whole."""

Document = dict[str, Any]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the routes where the page wants them."""
    return markdown.replace(PLACE, routes(document())) if PLACE in markdown else markdown


def document() -> Document:
    """The OpenAPI document of this version."""
    from api.main import create_app
    from store.settings import Settings

    with tempfile.TemporaryDirectory() as directory:
        nowhere = {
            "database_url": "postgresql://localhost/none",
            "broker_url": "redis://localhost/0",
        }  # nothing connects
        app = create_app(Settings(**nowhere, var_dir=Path(directory)))
        made: Document = app.openapi()
        asyncio.run(app.state.resources.close())
        return made


def routes(document: Document) -> str:
    """Every route as Markdown, by subject."""
    from api.reference import Reader

    lines: list[str] = []
    for subject in Reader(document).subjects():
        lines += [f"## {subject.name.capitalize()}", "", subject.text, ""]
        for route in subject.routes:
            lines += [*_route(route), ""]
    return "\n".join(lines)


def _route(route: Any) -> Iterator[str]:
    yield from (f"### {route.method} {route.path}", "", route.text, "")
    if route.parameters:
        yield from ("| parameter | in | type | what it is |", "|---|---|---|---|")
        for parameter in route.parameters:
            needed = " (needed)" if parameter.is_needed and parameter.place != "path" else ""
            said = f"{parameter.place} | {_type(parameter.kind)} | {_cell(parameter.text)}"
            yield f"| `{parameter.name}`{needed} | {said} |"
        yield ""
    for body in route.bodies:
        if body.fields:
            yield from (f"Body, `{body.media_type}`:", "", "| field | type | what it is |", "|---|---|---|")
            for field in body.fields:
                needed = " (needed)" if field.is_needed else ""
                yield f"| `{field.name}`{needed} | {_type(field.kind)} | {_cell(field.text)} |"
            yield ""
    yield from ("| status | what it means |", "|---|---|")
    for answer in route.answers:
        yield f"| {answer.status} | {_cell(answer.text)} |"
    yield from ("", "```sh", route.curl, "```", "")
    if route.example:
        text = route.example.splitlines()
        cut = [*text[:_LONGEST], "…"] if len(text) > _LONGEST else text
        yield from ("An answer:", "", "```json", *cut, "```")


def _type(kind: Sequence[Any]) -> str:
    return "".join(piece.text for piece in kind)


def _cell(text: str) -> str:
    """Text that may stand in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
