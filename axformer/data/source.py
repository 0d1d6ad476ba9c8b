"""The location of a data set. Light to import: passing it on needs none of the libraries that read it."""

from dataclasses import dataclass, field

from axformer.data.columns import Columns


@dataclass(frozen=True)
class DataSource:
    """The location of a data set and the names of its columns."""

    path: str
    columns: Columns = field(default_factory=Columns)
