"""What all schemas share: unknown fields are refused, and field docstrings become the API's documentation."""

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints

_NO_CONTROL_CHARACTERS = r"^[^\x00-\x1f\x7f]*$"  # the database stores no zero bytes, and a log line must stay a line
NAME_LENGTH = 200  # more does not fit a list
URI_LENGTH = 2048  # what browsers and proxies carry
LABEL_LENGTH = 255
LABEL_COUNT = 16  # labels find jobs; they are no place for documents

Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_LENGTH, pattern=_NO_CONTROL_CHARACTERS)]
Uri = Annotated[str, StringConstraints(min_length=1, max_length=URI_LENGTH, pattern=_NO_CONTROL_CHARACTERS)]
LabelKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$")]
LabelValue = Annotated[str, StringConstraints(max_length=LABEL_LENGTH, pattern=_NO_CONTROL_CHARACTERS)]


def without_zero_bytes(value: Any) -> Any:
    """The value, whose strings the database can store.

    Raises:
        ValueError: one of them, however deep, holds a zero byte.
    """
    if "\\u0000" in json.dumps(value, default=dict):
        raise ValueError("holds a zero byte, which cannot be stored")
    return value


class Schema(BaseModel):
    """Base of what is read and written over HTTP."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
