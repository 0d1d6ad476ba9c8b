"""The OpenAPI document: the answers of every route with examples, including errors."""

import json
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import Field

from api.errors import ApiError
from api.http.problems import MEDIA_TYPE
from axformer.wire.base import Schema
from axformer.wire.scopes import Scope

Responses = dict[int | str, dict[str, Any]]

EXAMPLES_FILE = Path(__file__).with_name("examples.json")
EXAMPLES: dict[str, Any] = json.loads(EXAMPLES_FILE.read_text(encoding="utf-8"))
"""Answers about one real job, by the names that the routes use."""
_SCHEMAS = "#/components/schemas"
_DETAILS = {
    400: "the body cannot be read; send it again",
    401: "the key was revoked; ask an admin of your team for another",
    403: "this needs a key with the scope 'write', and key 5f0c2a9e71d4b836 has 'read'; ask an admin of your team for another",
    404: "your team has no job 'job_0199d1c2a4b37c5f8e21d3b4a5968778'; GET /v1/jobs lists those there are",
    406: "'Accept: application/xml' is not on offer; there are application/json, application/x-ndjson",
    409: "job_0199d1c2a4b37c5f8e21d3b4a5968778: a job that is succeeded cannot become queued",
    408: "the file comes with less than 16384 bytes a second; send it over a faster connection, or give a URL instead",
    413: "the body is larger than 1048576 bytes; send files to /v1/uploads and name them as upload:ID",
    415: "the body is not multipart/form-data with a boundary; send it as curl -F file=@model.tar.gz does",
    416: "Range 'bytes=900-' lies outside the file, which has 512 bytes",
    422: "knob refine_margin=0.5: input should be greater than or equal to 1",
    429: "your team has 100 queued jobs and may have 100; wait until some have started, or cancel some",
    503: "the database does not answer at the moment; send the request again in a few seconds",
}


class ProblemField(Schema):
    """What is wrong with one value."""

    detail: str
    pointer: str | None = None
    """Where in the body, for example ``#/config/refine_margin``."""
    parameter: str | None = None
    """Which query parameter, path parameter or header."""


class Problem(Schema):
    """Why the request was not served."""

    type: str
    """Always ``about:blank``: ``status`` and ``code`` say it all."""
    title: str
    """The status in words."""
    status: int
    detail: str
    """What was wrong, with which value, and what to do."""
    instance: str
    """The address that was asked."""
    code: str
    """Stable, for programs."""
    errors: list[ProblemField] = Field(default_factory=list)
    used: int | None = None
    """Only where a limit of the team is reached: what it uses now, jobs or bytes."""
    limit: int | None = None
    """Only there: what it may use."""
    request_id: str | None = None
    """Only of unexpected errors: what to look for in the log."""


def answer(description: str, example: str | None) -> dict[str, Any]:
    """One answer of a route, with one of ``EXAMPLES``."""
    if example is None:
        return {"description": description}
    shown = {example: {"$ref": f"#/components/examples/{example}"}}
    return {"description": description, "content": {"application/json": {"examples": shown}}}


def answers(status: int, description: str, example: str | None, *errors: int) -> Responses:
    """The ``responses`` of a route: the successful answer with one of ``EXAMPLES``, and the possible errors.

    Every route that uses this may also find the database unavailable.
    """
    responses: Responses = {status: answer(description, example)}
    return responses | {error: _problem(error) for error in (*errors, 503)}


def describe(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """A function that builds the app's document once."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
                tags=app.openapi_tags,
            )
            schemas = made.setdefault("components", {}).setdefault("schemas", {})
            _drop_frameworks_errors(made)
            _add_scopes_and_common_errors(made)
            _add_body_examples(made)
            own = Problem.model_json_schema(ref_template=f"{_SCHEMAS}/{{model}}")
            schemas.update(own.pop("$defs"))
            schemas["Problem"] = own
            # Put in here, since the framework leaves out of an example what is null.
            made["components"]["examples"] = {name: {"value": value} for name, value in EXAMPLES.items()}
            app.openapi_schema = made
        return app.openapi_schema

    return document


def _drop_frameworks_errors(document: dict[str, Any]) -> None:
    """Remove the framework's own error schema, which it adds to every route with a parameter."""
    for item in document["paths"].values():
        for operation in item.values():
            content = operation["responses"].get("422", {}).get("content", {})
            if "application/json" in content:
                del operation["responses"]["422"]
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)


def _add_scopes_and_common_errors(document: dict[str, Any]) -> None:
    """Say which scope a route needs, and add the errors that any route with a key or with a body may answer."""
    for item in document["paths"].values():
        for operation in item.values():
            scopes = [
                scope for entry in operation.get("security", []) for demanded in entry.values() for scope in demanded
            ]
            if scopes:
                operation["description"] += f"\n\nNeeds a key with the scope `{scopes[0]}`."
            common = [429] if scopes else []
            common += [403] if any(scope != Scope.READ for scope in scopes) else []
            common += [400, 413] if "requestBody" in operation else []
            for status in common:
                operation["responses"].setdefault(str(status), _problem(status))


def _add_body_examples(document: dict[str, Any]) -> None:
    """Show the example of a body's schema where the body is described, which is where readers and tools look for it."""
    schemas = document["components"]["schemas"]
    for item in document["paths"].values():
        for operation in item.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                if "example" not in content:
                    [named, *_] = content["schema"].get("anyOf", [content["schema"]])
                    content["example"] = schemas[named["$ref"].removeprefix(f"{_SCHEMAS}/")]["examples"][0]


def _problem(status: int) -> dict[str, Any]:
    kind = next(error for error in ApiError.__subclasses__() if error.status == status)
    example = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": _DETAILS[status],
        "instance": "/v1/jobs",
        "code": kind.default_code,
    }
    return {
        "description": (kind.__doc__ or "").strip(),
        "content": {MEDIA_TYPE: {"schema": {"$ref": f"{_SCHEMAS}/Problem"}, "example": example}},
    }
