"""Parse untrusted JSON: limited size and depth, no duplicate keys, no numbers outside of the JSON standard."""

import json
from pathlib import Path
from typing import Any

from axformer.data.written import unique_keys
from axformer.intake.limits import JSON_DEPTH


def read_json(path: Path, most_bytes: int) -> Any:
    """The content of a JSON file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is too large or too deep, or is not JSON; the message continues "cannot be read: ".
    """
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ValueError(f"it has more than {most_bytes} bytes")
    return parse_json(content)


def parse_json(content: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: as :func:`read_json`.
    """
    try:
        text = content.decode("utf-8")
        value = json.loads(text, object_pairs_hook=unique_keys, parse_constant=_refuse_constant)
    except UnicodeError:
        raise ValueError("it is not UTF-8") from None
    except RecursionError:
        raise ValueError(f"its objects are nested more than {JSON_DEPTH} deep") from None
    _check_depth(value)
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"it holds {name}, which is not a number")


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level := [part for part in level if isinstance(part, dict | list)]:
        depth += 1
        if depth > JSON_DEPTH:
            raise ValueError(f"its objects are nested more than {JSON_DEPTH} deep")
        level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part)]
