"""Writes the table of routes into ``api.md`` from the service's own OpenAPI document, so that it cannot say anything else."""

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
    """Every route as Markdown, with the scope that it demands."""
    lines = ["| route | what it does | scope |", "|---|---|---|"]
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            scopes = [scope for way in route.get("security", []) for granted in way.values() for scope in granted]
            lines.append(f"| `{method.upper()} {path}` | {route['summary']} | {', '.join(scopes)} |")
    return "\n".join(lines)
