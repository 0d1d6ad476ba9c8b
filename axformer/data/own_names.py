"""The names that a data set gives the integers of its own columns, as ``datasets`` stores them with their features.

An integer means what its data set says, and a model may count the same classes in another order: CoNLL-2003 and many of its
taggers are such a pair.
"""

import json
from collections.abc import Mapping
from typing import Any

OwnNames = Mapping[str, tuple[str, ...]]
"""The names by column; the place of a name is the integer that stands for it."""
_KEY = b"huggingface"
"""Where ``datasets`` keeps the features in the metadata of a schema."""


def own_names_in(data: Any) -> OwnNames:
    """The names in a table of datasets or pyarrow, or in a schema of pyarrow; empty if it has none."""
    features = getattr(data, "features", None)
    if isinstance(features, Mapping):
        return _named(features)
    metadata = getattr(getattr(data, "schema", data), "metadata", None)
    if not isinstance(metadata, Mapping) or _KEY not in metadata:
        return {}
    try:
        features = json.loads(metadata[_KEY])["info"]["features"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return {}
    return _named(features) if isinstance(features, Mapping) else {}


def _named(features: Mapping[Any, Any]) -> OwnNames:
    found = {str(column): _names(feature) for column, feature in features.items()}
    return {column: names for column, names in found.items() if names}


def _names(feature: Any) -> tuple[str, ...]:
    """The names of a feature, or of what its lists hold."""
    if isinstance(feature, list) and len(feature) == 1:
        (feature,) = feature
    inner = _part(feature, "feature")
    names = _part(feature if inner is None else inner, "names")
    return tuple(map(str, names)) if isinstance(names, list | tuple) else ()


def _part(feature: Any, name: str) -> Any:
    return feature.get(name) if isinstance(feature, Mapping) else getattr(feature, name, None)
