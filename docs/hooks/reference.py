"""Writes the routes into ``api.md`` from the service's own OpenAPI document, so that the page cannot say anything else."""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

PLACE = "<!-- routes -->"
_JSON = "application/json"
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
    lines: list[str] = []
    for tag in document["tags"]:
        lines += [f"## {tag['name'].capitalize()}", "", tag.get("description", ""), ""]
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    lines += [*_route(document, method, path, operation), ""]
    return "\n".join(lines)


def _route(document: Document, method: str, path: str, operation: Document) -> Iterator[str]:
    yield f"### {method.upper()} {path}"
    yield ""
    yield operation.get("description") or f"{operation['summary']}."
    yield ""
    parameters = [_resolved(document, parameter) for parameter in operation.get("parameters", [])]
    if parameters:
        yield from ("| parameter | in | type | what it is |", "|---|---|---|---|")
        for parameter in parameters:
            needed = " (needed)" if parameter.get("required") and parameter["in"] != "path" else ""
            said = _cell(parameter.get("description") or parameter["schema"].get("description", ""))
            yield f"| `{parameter['name']}`{needed} | {parameter['in']} | {_type(document, parameter['schema'])} | {said} |"
        yield ""
    yield from _body(document, operation)
    yield from ("| status | what it means |", "|---|---|")
    for status, answer in operation["responses"].items():
        yield f"| {status} | {_cell(_resolved(document, answer)['description'])} |"
    yield ""
    yield from _example(document, operation)


def _body(document: Document, operation: Document) -> Iterator[str]:
    """The fields of what is sent."""
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = _resolved(document, content.get("schema", {}))
        fields = schema.get("properties", {})
        if not fields:
            continue
        yield from (f"Body, `{media_type}`:", "", "| field | type | what it is |", "|---|---|---|")
        for name, field in fields.items():
            needed = " (needed)" if name in schema.get("required", ()) else ""
            said = _cell(field.get("description") or _resolved(document, field).get("description", ""))
            yield f"| `{name}`{needed} | {_type(document, field)} | {said} |"
        yield ""


def _example(document: Document, operation: Document) -> Iterator[str]:
    """One answer of a request that went well."""
    good = next((answer for status, answer in operation["responses"].items() if status.startswith("2")), {})
    shown = _resolved(document, good).get("content", {}).get(_JSON, {}).get("examples", {})
    for example in list(shown.values())[:1]:
        text = json.dumps(_resolved(document, example)["value"], indent=2, ensure_ascii=False).splitlines()
        cut = [*text[:_LONGEST], "…"] if len(text) > _LONGEST else text
        yield from ("An answer:", "", "```json", *cut, "```")


def _resolved(document: Document, part: Document) -> Document:
    """What a reference stands for."""
    while "$ref" in part:
        found: Any = document
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        part = found
    return part


def _type(document: Document, schema: Document) -> str:
    """A type in a few words."""
    if "$ref" in schema:
        target = _resolved(document, schema)
        return _type(document, target) if "enum" in target else schema["$ref"].rsplit("/", 1)[-1]
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(document, one) for one in schema[several]))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_type(document, schema.get('items', {}))}"
    return f"{kind} ({schema['format']})" if "format" in schema else kind


def _cell(text: str) -> str:
    """Text that may stand in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
