"""Common parts of everything that goes over HTTP.

The service refuses unknown fields and words. A client ignores unknown fields and accepts unknown words
(:func:`read_answer`), so that a newer service does not break an older client. For the opposite case, a field that is added to
an answer has a default.
Field docstrings become the API's documentation.
"""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Generic, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    SecretStr,
    StringConstraints,
    ValidationInfo,
)
from pydantic_core import CoreSchema
from pydantic_core.core_schema import (
    ValidatorFunctionWrapHandler,
    plain_serializer_function_ser_schema,
    with_info_wrap_validator_function,
)

Shape = TypeVar("Shape", bound=BaseModel)
Item = TypeVar("Item")
Cursor = TypeVar("Cursor", int, str)

_NO_CONTROL_CHARACTERS = r"^[^\x00-\x1f\x7f]*$"  # the database stores no zero bytes, and a log line must stay a line
_HALVES = re.compile("[\ud800-\udfff]")
NAME_LENGTH = 200  # more does not fit a list
URI_LENGTH = 2048  # what browsers and proxies carry
LABEL_LENGTH = 255
NESTED_MOST = 32  # knobs have two levels; what writes JSON gives up at some hundreds
LABEL_COUNT = 16  # labels find jobs; they are not a place for documents

Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_LENGTH, pattern=_NO_CONTROL_CHARACTERS)]
Uri = Annotated[str, StringConstraints(min_length=1, max_length=URI_LENGTH, pattern=_NO_CONTROL_CHARACTERS)]
LabelKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$")]
LabelValue = Annotated[str, StringConstraints(max_length=LABEL_LENGTH, pattern=_NO_CONTROL_CHARACTERS)]


def printable(most: int) -> AfterValidator:
    """Checks that a secret has at most so many printable characters of ASCII, as a header allows."""

    def check(token: SecretStr) -> SecretStr:
        if re.fullmatch(f"[!-~]{{1,{most}}}", token.get_secret_value()) is None:
            raise ValueError(f"is not a token: at most {most} letters, digits and signs of ASCII, without spaces")
        return token

    return AfterValidator(check)


def storable(value: Any) -> Any:
    """Check that the database can store all strings in a value.

    Raises:
        ValueError: it is nested too deeply, or a string in it contains a zero byte or half of a character.
    """
    if _is_deeper(value, NESTED_MOST):
        raise ValueError(f"is nested more than {NESTED_MOST} levels deep, which cannot be stored")
    text = json.dumps(value, default=dict, ensure_ascii=False)
    if "\\u0000" in text:
        raise ValueError("holds a zero byte, which cannot be stored")
    if _HALVES.search(text):
        raise ValueError("holds half of a character (a lone surrogate), which cannot be stored")
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects of a value lie more than so many levels within each other."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [
            inner
            for outer in layer
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not layer:
            return False
    return True


class Schema(BaseModel):
    """Base class of everything that is read and written over HTTP."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class PageRead(Schema, Generic[Item, Cursor]):
    """Some items in order. Ask with ``after=next`` for those that follow, also for those added in the meantime."""

    # Docstrings would be looked for in all modules, anew for each kind of items: a tenth of a second, with PyTorch half a one.
    model_config = ConfigDict(use_attribute_docstrings=False)

    data: list[Item]
    has_more: bool = Field(description="Whether more follow right now.")
    next: Cursor | None = Field(description="The ``after`` of the next page; null where nothing has been seen yet.")


_CLIENT = object()
"""The validation context of a client."""


def read_answer(shape: type[Shape], content: str | bytes) -> Shape:
    """Read an answer of the service as a client: unknown fields are ignored, and words may be any text.

    Raises:
        pydantic.ValidationError: the answer has another form.
    """
    return shape.model_validate_json(content, extra="ignore", context=_CLIENT)


@dataclass(frozen=True)
class WordOf:
    """Marks a word of an answer, as in ``Annotated[JobState | str, WordOf(JobState)]``: one of these for the service, any text
    for a client."""

    known: type[StrEnum]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of the known words, which is also documented."""
        return with_info_wrap_validator_function(
            _read_word, handler.generate_schema(self.known), serialization=plain_serializer_function_ser_schema(str)
        )


def _read_word(value: Any, known: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    return value if info.context is _CLIENT and isinstance(value, str) else known(value)
