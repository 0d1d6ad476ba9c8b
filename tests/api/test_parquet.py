"""What the API writes as Parquet is read by another program as it was."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from api.services.parquet import Column, Kind, parquet_file

COLUMNS = (
    Column("right", Kind.BOOLEAN),
    Column("right or none", Kind.BOOLEAN, may_be_none=True),
    Column("count", Kind.INTEGER),
    Column("share or none", Kind.NUMBER, may_be_none=True),
    Column("größe", Kind.TEXT),
    Column("text or none", Kind.TEXT, may_be_none=True),
)
TYPES = {Kind.BOOLEAN: pa.bool_(), Kind.INTEGER: pa.int64(), Kind.NUMBER: pa.float64(), Kind.TEXT: pa.string()}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
VALUES = {
    Kind.BOOLEAN: st.booleans(),
    Kind.INTEGER: st.integers(-(2**63), 2**63 - 1),
    Kind.NUMBER: st.floats(allow_nan=False),
    Kind.TEXT: TEXTS,
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
    columns = [Column(f"column {number}", Kind.INTEGER) for number in range(200)]
    row = {column.name: place for place, column in enumerate(columns)}
    content = b"".join(parquet_file(columns, [[row]]))
    assert pq.read_table(io.BytesIO(content)).to_pylist() == [row]
