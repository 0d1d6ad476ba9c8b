"""References to checkpoints and data, in full or as a bare string, and their names for people."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from axformer.data.columns import Columns
from axformer.wire.base import Schema, Uri, storable

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
"""Lower-case hexadecimal digits."""


_SCHEME = re.compile(r"[a-z][a-z0-9+.]+://|upload:|hf:", re.IGNORECASE)


def tidy(reference: str) -> str:
    """A reference without spaces around it, its scheme in small letters; a path, which may have such spaces, as it is."""
    text = reference.strip()
    found = _SCHEME.match(text)
    return reference if found is None else found[0].lower() + text[found.end() :]


Address = Annotated[Uri, BeforeValidator(lambda value: tidy(value) if isinstance(value, str) else value)]


class Reference(Schema):
    """A location. A string ``"X"`` is short for the object ``{"uri": "X"}``."""

    EXAMPLE: ClassVar[str]
    """A location, for the message to who gives neither a string nor an object."""

    uri: Address
    """The address."""
    sha256: Sha256 | None = None
    """The expected digest."""

    @model_validator(mode="before")
    @classmethod
    def _from_string(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"uri": value}
        if isinstance(value, Mapping | cls):
            return value
        raise ValueError(f'must be a reference such as "{cls.EXAMPLE}" or an object such as {{"uri": "{cls.EXAMPLE}"}}')

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The object, or a string that fits its ``uri``."""
        made = handler(core)
        whole = handler.resolve_ref_schema(made)
        described = {name: whole.pop(name) for name in ("title", "description")}
        uri = whole["properties"]["uri"]
        short = {name: uri[name] for name in ("type", "minLength", "maxLength", "pattern")}
        described["anyOf"] = [short | {"description": "Short for an object with this ``uri``."}, dict(whole)]
        whole.clear()
        whole.update(described)
        return made


class CheckpointRef(Reference):
    """The location of the fine-tuned model. A string is short for an object with this ``uri``."""

    EXAMPLE = "hf://org/name"

    uri: Address
    """``https://`` (directory or archive), ``hf://ORG/NAME[@REVISION]``, ``s3://BUCKET/PREFIX``, ``file:///PATH`` under
    a root that the operator has opened, or ``upload:ID``."""
    sha256: Sha256 | None = None
    """Expected digest; if it differs, the job fails before anything is loaded. For an archive, its own; for a directory, the
    one in an earlier event ``job.fetched``."""


class DataRef(Reference):
    """The location of a data set, and how to read it. A string is short for an object with this ``uri``."""

    EXAMPLE = "hf://datasets/org/name/dev.jsonl"

    uri: Address
    """A JSON Lines, CSV or Parquet file: ``https://``, ``hf://datasets/ORG/NAME[@REVISION]/PATH``, ``s3://``, ``file://``
    or ``upload:ID``."""
    sha256: Sha256 | None = None
    """Expected digest of the file; if it differs, the job fails before reading it."""
    columns: Annotated[Columns | None, AfterValidator(storable)] = None
    """Names of the columns that the task reads, if they differ from ``text``, ``text_pair``, ``label`` and so on."""


_ANY_NAME = re.compile(r"(checkpoint|model|output)([-_]\d+)?(\.(zip|tar|tgz|tar\.gz))?", re.IGNORECASE)


def says_nothing(name: str) -> bool:
    """Whether a checkpoint's name is one that any may have, such as ``checkpoint-500`` or ``model.tar``."""
    return _ANY_NAME.fullmatch(name) is not None


def shown_name(reference: str) -> str:
    """The name of an input: a hub's reference as it is, of other places the last part without a query.

    If that says nothing, as for ``reviews/checkpoint-500``, it is the directory's.
    """
    if reference.startswith("hf://"):
        return reference
    if "://" not in reference:
        path = Path(reference).resolve()
        return path.parent.name if says_nothing(path.name) and path.parent.name else path.name
    return re.split(r"[?#]", reference, maxsplit=1)[0].rstrip("/").rpartition("/")[2]
