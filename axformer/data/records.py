"""Convert data in memory to columns of plain Python values: records, columns, and tables of pyarrow, pandas, polars, datasets.

Tables are recognised by their methods, so none of these libraries is needed here. Values of NumPy, PyTorch, pyarrow and pandas
become plain Python values, so that no other code has to handle them.

An integer means what its data set says, and a model may count the same classes in another order: CoNLL-2003 and many of its
taggers are such a pair. ``datasets`` stores the names of integers with its features.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

from axformer.errors import DataError, WrongTypeError


class Frame(Protocol):
    """A table of pandas or polars."""

    @property
    def columns(self) -> Any:
        """The column names, which index the table."""


class Dataset(Protocol):
    """A table of datasets or pyarrow."""

    @property
    def column_names(self) -> Any:
        """The column names, which index the table."""


Records: TypeAlias = Iterable[Mapping[str, Any]] | Mapping[str, Iterable[Any]] | Frame | Dataset
"""Records, which may come from a generator; columns by name; or a table."""
OwnNames = Mapping[str, tuple[str, ...]]
"""The names that a data set gives its integers, by column; the place of a name is the integer that stands for it."""
_KEY = b"huggingface"
"""Where ``datasets`` keeps the features in the metadata of a schema."""
_TAKEN = "a path, a list of records, a dict of columns, or a table of pyarrow, pandas, polars or datasets"
_PLAIN = (str, int, float, bool, type(None))
_MISSING = ("NAType", "NaTType")
"""Types of pandas' missing values; its NaN is a float and stays one."""


def table_of(data: Records) -> dict[str, list[Any]]:
    """The columns of data in memory, in its row order.

    Raises:
        WrongTypeError: its type is not known.
        DataError: its columns are not equally long, or two have the same name.
    """
    columns = _columns(data)
    if columns is None:
        return _of_records(data)
    table = {str(name): [plain(value) for value in values] for name, values in columns.items()}
    lengths = {name: len(values) for name, values in table.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"'{name}' has {length}" for name, length in lengths.items())
        raise DataError(f"the columns of the data are not equally long: {told} rows")
    return table


def check_names(names: Sequence[str]) -> None:
    """Check that the columns of a table have different names.

    Raises:
        DataError: two have the same.
    """
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise DataError(f"two columns of the data are called '{twice}'; rename one")


def plain(value: Any) -> Any:
    """Convert a value to plain Python, including nested values."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, Decimal | bytes):
        return _known(value)
    for convert in ("as_py", "tolist", "to_list"):
        if hasattr(value, convert):
            return plain(getattr(value, convert)())
    return None if type(value).__name__ in _MISSING else value


def _known(value: Decimal | bytes) -> Any:
    """A number, or UTF-8 as text, which old writers of Parquet call binary; other bytes as they are."""
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value % 1 == 0 else float(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _columns(data: Any) -> Mapping[Any, Iterable[Any]] | None:
    """The columns of a table; None if the data are records."""
    if hasattr(data, "to_pydict"):  # pyarrow
        check_names(data.schema.names)
        return dict(zip(data.schema.names, map(_values, data.columns), strict=True))
    for attribute in ("column_names", "columns"):  # of datasets; of pandas and polars
        names = getattr(data, attribute, None)
        if names is None or isinstance(names, Mapping) or not hasattr(names, "__iter__"):
            continue
        if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
            check_names(list(map(str, names)))
            return {name: data[name] for name in names}
    if not isinstance(data, Mapping):
        return None
    if any(hasattr(part, "column_names") for part in data.values()):
        raise WrongTypeError(f"the data has the splits {', '.join(map(str, data))}; give one of them")
    for name, values in data.items():
        if isinstance(values, str | bytes | Mapping | AbstractSet) or not hasattr(values, "__iter__"):
            raise WrongTypeError(f"column '{name}' of the data is {_kind(values)}, not a list; give {_TAKEN}")
    return data


def _values(column: Any) -> Any:
    """The values of a column of pyarrow; as text where Python has no such value, as of moments in nanoseconds."""
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):
        return column.cast("string").to_pylist()


def _of_records(data: Any) -> dict[str, list[Any]]:
    if isinstance(data, str | bytes) or not hasattr(data, "__iter__"):
        raise WrongTypeError(f"the data is {_kind(data)}; give {_TAKEN}")
    records = []
    for row, record in enumerate(data, start=1):
        if not isinstance(record, Mapping):
            raise WrongTypeError(f"row {row} of the data is {_kind(record)}, not a dict; give {_TAKEN}")
        records.append({str(name): plain(value) for name, value in record.items()})
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}


def _kind(value: Any) -> str:
    return f"of type {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")


def own_names_in(data: Any) -> OwnNames:
    """The names in a table of datasets or pyarrow; empty if it has none."""
    features = getattr(data, "features", None)
    metadata = getattr(getattr(data, "schema", None), "metadata", None)
    if not isinstance(features, Mapping) and isinstance(metadata, Mapping) and _KEY in metadata:
        try:
            features = json.loads(metadata[_KEY])["info"]["features"]
        except (ValueError, RecursionError, KeyError, TypeError):
            return {}
    return own_names_of(features)


def own_names_of(features: Any) -> OwnNames:
    """The names in features of ``datasets``, by column; empty if there are none."""
    found = (
        {str(column): _names(feature) for column, feature in features.items()} if isinstance(features, Mapping) else {}
    )
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
