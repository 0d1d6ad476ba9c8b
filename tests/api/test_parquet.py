"""What the API writes as Parquet is read by another program as it was."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from api.services.parquet import ParquetColumn, ParquetType, parquet_file

COLUMNS = (
    ParquetColumn("right", ParquetType.BOOLEAN),
    ParquetColumn("right or none", ParquetType.BOOLEAN, may_be_none=True),
    ParquetColumn("count", ParquetType.INTEGER),
    ParquetColumn("share or none", ParquetType.NUMBER, may_be_none=True),
    ParquetColumn("größe", ParquetType.TEXT),
    ParquetColumn("text or none", ParquetType.TEXT, may_be_none=True),
)
TYPES = {
    ParquetType.BOOLEAN: pa.bool_(),
    ParquetType.INTEGER: pa.int64(),
    ParquetType.NUMBER: pa.float64(),
    ParquetType.TEXT: pa.string(),
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
VALUES = {
    ParquetType.BOOLEAN: st.booleans(),
    ParquetType.INTEGER: st.integers(-(2**63), 2**63 - 1),
    ParquetType.NUMBER: st.floats(allow_nan=False),
    ParquetType.TEXT: TEXTS,
}
ROWS = st.fixed_dictionaries(
    {one.name: VALUES[one.kind] | st.none() if one.may_be_none else VALUES[one.kind] for one in COLUMNS}
)


@given(groups=st.lists(st.lists(ROWS, min_size=1, max_size=40), max_size=3))
def test_a_file_gives_back_rows_and_types(groups):
    file = pq.ParquetFile(io.BytesIO(b"".join(parquet_file(COLUMNS, groups))))
    assert file.read().to_pylist() == [row for rows in groups for row in rows]
    assert file.schema_arrow == pa.schema(
        [pa.field(one.name, TYPES[one.kind], nullable=one.may_be_none) for one in COLUMNS]
    )
    found = [file.metadata.row_group(place).num_rows for place in range(file.metadata.num_row_groups)]
    assert found == [len(rows) for rows in groups]


def test_a_file_of_many_columns_has_them_all():
    columns = [ParquetColumn(f"column {number}", ParquetType.INTEGER) for number in range(200)]
    row = {column.name: place for place, column in enumerate(columns)}
    content = b"".join(parquet_file(columns, [[row]]))
    assert pq.read_table(io.BytesIO(content)).to_pylist() == [row]
