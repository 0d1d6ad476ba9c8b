"""Words for bodies that do not fit their schema: the field or the word that was probably meant, and unknown knobs.

Knobs are read after all else of a body has been, so they are looked at here too: who corrects the rest learns of them at once.
"""

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from api.errors import FieldError
from axformer.config import unknown_knobs
from axformer.config.nearest import suggestion

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
