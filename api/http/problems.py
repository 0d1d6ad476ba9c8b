"""Errors as ``application/problem+json`` (RFC 9457): one form for ours, the framework's and unexpected ones.

Field errors carry a JSON pointer into the body or the name of the parameter, so that a form can mark the field.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm.exc import ObjectDeletedError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from api.errors import (
    ApiError,
    BadRequestError,
    BodyTooLargeError,
    FieldError,
    InvalidInputError,
    NoRoomError,
    NoSuchObjectError,
    UnavailableError,
    UnsupportedMediaError,
)
from api.middleware.headers import HEADER as REQUEST_ID_HEADER
from api.middleware.headers import SECURITY_HEADERS
from axformer.config import unknown_knobs
from axformer.config.nearest import choice_suggestion, suggestion
from axformer.errors import reason_of
from store.errors import StorageFullError, StorageUnavailableError

MEDIA_TYPE = "application/problem+json"
_RETRY_AFTER = {"Retry-After": "5"}  # seconds; a restart of the database takes about as long
_SHOWN_VALUE = 200  # characters of a refused value that are repeated to the caller
_MOST_SUGGESTIONS = 20  # errors of a request; looking for words that were meant takes time
_PARAMETER_PLACES = ("query", "path", "header", "cookie")
_DISK_FULL = "53100"
"""PostgreSQL's code for a file that cannot grow."""
_LOG = structlog.get_logger(__name__)
_BY_STATUS: dict[int, type[ApiError]] = {
    error.status: error for error in (BadRequestError, NoSuchObjectError, BodyTooLargeError, UnsupportedMediaError)
}


def install(app: FastAPI) -> None:
    """Render every error of the app as a problem."""
    app.add_exception_handler(ApiError, _ours)
    app.add_exception_handler(HTTPException, _frameworks)
    app.add_exception_handler(RequestValidationError, _refused_fields)
    for unreachable in (OperationalError, InterfaceError, PoolTimeoutError):
        app.add_exception_handler(unreachable, _no_database)
    app.add_exception_handler(ObjectDeletedError, _deleted)
    app.add_exception_handler(StorageUnavailableError, _no_storage)
    app.add_exception_handler(StorageFullError, _full_storage)
    app.add_exception_handler(Exception, _unexpected)


def problem(
    *,
    status: int,
    code: str,
    detail: str,
    instance: str,
    errors: Sequence[FieldError] = (),
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    """A problem as a response. ``more`` are further members of the document."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": instance,
        "code": code,
        **more,
    }
    if errors:
        body["errors"] = [
            {name: value for name, value in asdict(error).items() if value is not None} for error in errors
        ]
    # Escaped to ASCII, since a refused value may hold code points that UTF-8 cannot write.
    return Response(json.dumps(body), status_code=status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def render(error: ApiError, instance: str) -> Response:
    """One of our errors as a response."""
    return problem(
        status=error.status,
        code=error.code or error.default_code,
        detail=error.detail,
        instance=instance,
        errors=error.errors,
        headers=error.headers,
        **error.figures,
    )


def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return render(error, request.url.path)


def _frameworks(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    phrase = HTTPStatus(status).phrase
    kind = _BY_STATUS.get(status)
    code = kind.default_code if kind else phrase.lower().replace(" ", "_").replace("-", "_")
    detail = _why_unreadable(error.__cause__) or str(error.detail)
    if detail == phrase:
        there_is = "/docs shows what there is, and /openapi.json lists it for programs"
        detail = f"{request.method} {request.url.path}: {phrase.lower()}; {there_is}"
    return problem(status=status, code=code, detail=detail, instance=request.url.path, headers=error.headers)


def _why_unreadable(cause: BaseException | None) -> str | None:
    """Why a body cannot be read, where the framework only says that it cannot; None if nothing more is known."""
    if isinstance(cause, UnicodeDecodeError):
        found = f"byte {cause.start} is 0x{cause.object[cause.start]:02x}"
        return f"the body is not UTF-8 ({found}); send JSON in UTF-8"
    if isinstance(cause, RecursionError):
        return "the body is nested too deeply; send lists and objects within each other less deep"
    if isinstance(cause, ValueError) and "digits" in str(cause):
        return f"a number of the body has more than {sys.get_int_max_str_digits():,} digits; send a shorter one"
    return None


def _refused_fields(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    items = error.errors()
    errors = [_field_error(item, request if len(items) <= _MOST_SUGGESTIONS else None) for item in items]
    errors += knob_errors(error.body, errors)
    detail = "; ".join(f"{item.pointer or item.parameter}: {item.detail}" for item in errors)
    return render(InvalidInputError(detail, errors=errors), request.url.path)


_WRITE_ONLY = "token"
"""In the names of fields whose values are never repeated, not even to their sender: answers may be logged on their way."""


def _is_secret(path: Sequence[Any], value: Any) -> bool:
    return _WRITE_ONLY in f"{path}{value}"


def _field_error(item: Mapping[str, Any], request: Request | None) -> FieldError:
    """One error as a caller reads it; with the request it says also what was probably meant."""
    place, *path = item["loc"]
    message = reason_of(item)
    if item["type"] == "json_invalid":
        return FieldError(f"is not JSON: {item['ctx']['error']} at character {path[0]}", pointer="#")
    if isinstance(item.get("input"), bytes):
        return FieldError("is not read as JSON; send it with 'Content-Type: application/json'", pointer="#")
    if item["type"] == "extra_forbidden":
        message = unknown_field(None if request is None else _body_type(request), path)
    elif item["type"] != "missing" and not _is_secret(path, item.get("input")):
        near = "" if request is None else choice_suggestion(item)
        message = f"{message}, not {_shown(item.get('input'))}{near and f'; {near}'}"
    if place in _PARAMETER_PLACES:
        return FieldError(message, parameter=str(path[0]))
    return FieldError(message, pointer="#" + "".join(f"/{_escaped(part)}" for part in path))


def _body_type(request: Request) -> Any:
    """The type of the body that the route reads; None if it reads none."""
    return get_type_hints(request.scope["endpoint"]).get("body")


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN_VALUE else f"{text[:_SHOWN_VALUE]}…"


def _escaped(part: Any) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


def _deleted(request: Request, error: Exception) -> Response:  # noqa: ARG001 - a handler takes both
    return render(NoSuchObjectError("it was deleted while this request was answered"), request.url.path)


def _no_database(request: Request, error: Exception) -> Response:
    if getattr(getattr(error, "orig", None), "sqlstate", None) == _DISK_FULL:
        _LOG.error("database_full", path=request.url.path)
        detail = "the database's disk is full; ask the operator to make room"
        return render(NoRoomError(detail, code="database_full"), request.url.path)
    _LOG.error("database_unavailable", error=type(error).__name__, path=request.url.path)
    detail = "the database does not answer at the moment; send the request again in a few seconds"
    return render(UnavailableError(detail, code="database_unavailable", headers=_RETRY_AFTER), request.url.path)


def _no_storage(request: Request, error: Exception) -> Response:
    _LOG.error("storage_unavailable", reason=str(error), path=request.url.path)
    detail = "the storage of files does not answer at the moment; send the request again in a few seconds"
    return render(UnavailableError(detail, code="storage_unavailable", headers=_RETRY_AFTER), request.url.path)


def _full_storage(request: Request, error: Exception) -> Response:
    _LOG.error("storage_full", reason=str(error), path=request.url.path)
    return render(NoRoomError("the storage of files is full; ask the operator to make room"), request.url.path)


def _unexpected(request: Request, error: Exception) -> Response:
    request_id = request.scope.get("request_id", "")
    _LOG.error("unexpected_error", exc_info=error, path=request.url.path, request_id=request_id)
    return problem(
        status=500,
        code="internal_error",
        detail=f"something failed here that should not; report it with the request id {request_id}",
        instance=request.url.path,
        # This answer is made outside of all middleware, so it brings its headers itself.
        headers={**SECURITY_HEADERS, REQUEST_ID_HEADER: request_id},
        request_id=request_id,
    )


_CONFIG = "#/config"


def unknown_field(model: Any, path: Sequence[Any]) -> str:
    """What to say of a field that the schema does not have.

    Args:
        model: the type of the whole body; None if it is not known.
        path: names and indices that lead to the field.
    """
    near = suggestion(path[-1], _fields_at(model, path[:-1]))
    return f"Unknown field; {near} If not, leave it out" if near else "Unknown field; leave it out"


def knob_errors(body: Any, known: Sequence[FieldError]) -> list[FieldError]:
    """The unknown knobs of a refused job.

    Args:
        body: as it was sent.
        known: what else is wrong with it. A config that is itself refused there is not looked at.
    """
    config = body.get("config") if isinstance(body, Mapping) else None
    if not isinstance(config, Mapping) or any(error.pointer == _CONFIG for error in known):
        return []
    return [FieldError(said, pointer=_CONFIG) for said in unknown_knobs(config)]


def _fields_at(model: Any, path: Sequence[Any]) -> Sequence[str]:
    """The fields of the part of a body that a path leads to; none if it is not a model."""
    for name in path:
        model = _inner(model)
        if isinstance(name, str):
            field = model.model_fields.get(name) if _is_model(model) else None
            model = None if field is None else field.annotation
    model = _inner(model)
    return list(model.model_fields) if _is_model(model) else ()


def _inner(annotation: Any) -> Any:
    """The type inside of lists and of what may be null."""
    while get_origin(annotation) is not None and not _is_model(annotation):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        annotation = parts[0] if parts else None
    return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
