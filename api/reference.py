"""The OpenAPI document in a form for readers: routes by subject, the schemas that they name, and a curl line for each route.

The page ``/docs`` and the page of the documents are both written from it.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]
"""An OpenAPI document, or a part of one."""
_JSON = "application/json"
_FORM = "multipart/form-data"
_BINARY = "binary"
_PREFIX = "/v1"
"""Part of the address in ``API``, as in the documents."""


@dataclass(frozen=True)
class Piece:
    """A piece of a type in words."""

    text: str
    schema: str = ""
    """The name of the schema that it stands for, if any."""


@dataclass(frozen=True)
class Field:
    """A field of a schema, or a parameter."""

    name: str
    is_needed: bool
    kind: Sequence[Piece]
    """Its type in words."""
    text: str
    """What it is; code stands between backticks."""
    place: str = ""
    """Of a parameter: ``path``, ``query`` or ``header``."""


@dataclass(frozen=True)
class Body:
    """What is sent."""

    media_type: str
    kind: Sequence[Piece]
    fields: Sequence[Field]
    example: str
    """Indented JSON; empty for a file."""


@dataclass(frozen=True)
class Answer:
    """What may come back."""

    status: str
    text: str
    kind: Sequence[Piece]
    """The type of its JSON; empty if it has none."""
    media_types: Sequence[str]
    example: str
    """Indented JSON; empty if there is none."""

    @property
    def is_good(self) -> bool:
        """Whether the request did what it should."""
        return self.status.startswith("2")


@dataclass(frozen=True)
class Route:
    """A route."""

    name: str
    """Unique, for links to it."""
    method: str
    """In capitals."""
    path: str
    summary: str
    text: str
    """Paragraphs with an empty line between them."""
    scope: str
    """What a key must be allowed to do; empty if no key is needed."""
    parameters: Sequence[Field]
    bodies: Sequence[Body]
    answers: Sequence[Answer]
    curl: str
    """A command for a shell in which ``API`` and ``KEY`` are set."""

    @property
    def example(self) -> str:
        """An answer to a request that went well; empty if there is none."""
        return next((answer.example for answer in self.answers if answer.is_good and answer.example), "")


@dataclass(frozen=True)
class Subject:
    """The routes of a subject."""

    name: str
    text: str
    routes: Sequence[Route]


@dataclass(frozen=True)
class Shape:
    """A schema that routes name."""

    name: str
    title: str
    text: str
    is_sent: bool
    """Whether it is a part of what is sent; in such a schema a field may be left out if it is not needed."""
    fields: Sequence[Field]


class Reader:
    """Reads a document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def subjects(self) -> list[Subject]:
        """All routes, in the order of the document's tags."""
        return [
            Subject(tag["name"], tag.get("description", ""), [*self._routes(tag["name"])])
            for tag in self._document["tags"]
        ]

    def shapes(self) -> list[Shape]:
        """All schemas with fields, by name."""
        schemas, sent = self._document["components"]["schemas"], set[str]()
        for methods in self._document["paths"].values():
            for operation in methods.values():
                self._collect(operation.get("requestBody", {}), sent)
        shapes = (self._shape(name, schemas[name], is_sent=name in sent) for name in sorted(schemas))
        return [shape for shape in shapes if shape.fields]

    def _collect(self, part: Any, names: set[str]) -> None:
        """Add the names of all schemas that a part of the document leads to."""
        if isinstance(part, Mapping):
            name = str(part.get("$ref", "")).rsplit("/", 1)[-1]
            if name and name not in names:
                names.add(name)
                self._collect(self._resolved(part), names)
        for one in part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ():
            self._collect(one, names)

    def _routes(self, tag: str) -> Iterator[Route]:
        for path, methods in self._document["paths"].items():
            for method, operation in methods.items():
                if tag in operation["tags"]:
                    yield self._route(method, path, operation)

    def _route(self, method: str, path: str, operation: Document) -> Route:
        bodies = [*self._bodies(operation)]
        answers = [self._answer(status, answer) for status, answer in sorted(operation["responses"].items())]
        scopes = [scope for entry in operation.get("security", []) for wanted in entry.values() for scope in wanted]
        return Route(
            name=re.sub("[^a-z]+", "-", f"{method}{path.removeprefix(_PREFIX)}").strip("-"),
            method=method.upper(),
            path=path,
            summary=operation["summary"],
            text=operation.get("description") or f"{operation['summary']}.",
            scope=scopes[0] if scopes else "",
            parameters=[self._parameter(one) for one in operation.get("parameters", [])],
            bodies=bodies,
            answers=answers,
            curl=_curl(method, path, operation, needs_key=bool(scopes)),
        )

    def _parameter(self, parameter: Document) -> Field:
        found = self._resolved(parameter)
        schema = found["schema"]
        text = found.get("description") or schema.get("description", "")
        return Field(found["name"], found.get("required", False), self._kind(schema), text, found["in"])

    def _bodies(self, operation: Document) -> Iterator[Body]:
        for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
            schema = content.get("schema", {})
            shown = _indented(content["example"]) if media_type == _JSON else ""
            yield Body(media_type, self._kind(schema), self._fields(schema), shown)

    def _answer(self, status: str, answer: Document) -> Answer:
        found = self._resolved(answer)
        contents = found.get("content", {})
        content = contents.get(_JSON, {})
        examples = [self._resolved(example)["value"] for example in content.get("examples", {}).values()]
        kind = self._kind(content["schema"]) if "schema" in content else []
        return Answer(status, found["description"], kind, list(contents), _indented(examples[0]) if examples else "")

    def _shape(self, name: str, schema: Document, *, is_sent: bool) -> Shape:
        text = schema.get("description", "")
        return Shape(name, schema.get("title", name), text, is_sent, self._fields(schema))

    def _fields(self, schema: Document) -> list[Field]:
        """The fields of an object, or of the first object among alternatives."""
        found = self._resolved(schema)
        for one in found.get("anyOf", []):
            if fields := self._fields(one):
                return fields
        needed = found.get("required", ())
        return [
            Field(
                name,
                name in needed,
                self._kind(field),
                field.get("description") or self._resolved(field).get("description", ""),
            )
            for name, field in found.get("properties", {}).items()
        ]

    def _resolved(self, part: Document) -> Document:
        """What a reference stands for."""
        while "$ref" in part:
            found: Any = self._document
            for name in part["$ref"].removeprefix("#/").split("/"):
                found = found[name]
            part = found
        return part

    def _kind(self, schema: Document) -> list[Piece]:
        """A type in a few words."""
        if "$ref" in schema:
            name, target = schema["$ref"].rsplit("/", 1)[-1], self._resolved(schema)
            return self._kind(target) if "enum" in target else [Piece(target.get("title", name), name)]
        for several in ("anyOf", "oneOf", "allOf"):
            if several in schema:
                kinds = dict.fromkeys(tuple(self._kind(one)) for one in schema[several])
                return _joined(kinds, " or ")
        if words := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
            return _joined(([Piece(f"`{word}`")] for word in words), ", ")
        kind = str(schema.get("type", "any"))
        inner = schema.get("items") if kind == "array" else schema.get("additionalProperties")
        if isinstance(inner, Mapping):
            return [Piece("list of " if kind == "array" else "object of "), *self._kind(inner)]
        return [Piece(f"{kind} ({schema['format']})" if "format" in schema else kind)]


def _joined(kinds: Any, between: str) -> list[Piece]:
    pieces = [piece for kind in kinds for piece in (Piece(between), *kind)]
    return pieces[1:]


def _indented(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _curl(method: str, path: str, operation: Document, *, needs_key: bool) -> str:
    """A command; parameters in the path are variables of the shell, as ``$JOB_ID`` for ``{job_id}``."""
    words = ["curl"]
    words += {"get": [], "post": ["-X POST"], "delete": ["-X DELETE"], "head": ["-I"]}[method]
    if needs_key:
        words.append('-H "Authorization: Bearer $KEY"')
    content = operation.get("requestBody", {}).get("content", {})
    if _FORM in content:
        words += ["-F file=@model.tar.gz"]
    elif _JSON in content:
        words += [f"--json {shlex.quote(json.dumps(content[_JSON]['example'], ensure_ascii=False))}"]
    good = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
    contents = [one for answer in good for one in answer.get("content", {}).values()]
    if method == "get" and contents and all(one.get("schema", {}).get("format") == _BINARY for one in contents):
        words.append("-OJ")
    address = re.sub(r"\{(\w+)\}", lambda name: f"${name[1].upper()}", path.removeprefix(_PREFIX))
    return " ".join([word for word in words if word != "-X POST" or not content] + [f'"$API{address}"'])
