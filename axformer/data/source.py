"""Where a data set is. Light to import: whoever only passes it on needs none of the libraries that read it."""

from dataclasses import dataclass, field

from axformer.data.columns import Columns


@dataclass(frozen=True)
class DataSource:
    """Where a data set is and how its columns are called."""

    path: str
    columns: Columns = field(default_factory=Columns)
