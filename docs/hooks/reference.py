"""Writes the routes into ``api.md`` from the service's own OpenAPI document, so that the page cannot say anything else."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

PLACE = "<!-- routes -->"
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
    """A table of the routes for each subject, as Markdown."""
    lines: list[str] = []
    for tag in document["tags"]:
        lines += [f"## {tag['name'].capitalize()}", "", tag["description"], "", "| route | what it does |", "|---|---|"]
        lines += [
            f"| `{method.upper()} {path}` | {operation['summary']} |"
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if tag["name"] in operation["tags"]
        ]
        lines.append("")
    return "\n".join(lines)
