"""Every form of file, column and label that the document names is read as it says, or refused with its remedy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.data.delimited import DelimitedError, read_delimited
from axformer.data.labels import ClassNames, LabelColumn, Reading
from axformer.data.rows import Rows
from axformer.errors import DataError
from tests.axformer.data.readings import DOCUMENT, TABLES, Case, document, encoded_of, labels_of

CASES = [case for cases in TABLES.values() for case in cases]
NAMES = st.lists(
    st.text("abc123 ", min_size=1, max_size=3).map(str.strip).filter(bool), min_size=2, max_size=6, unique=True
)


@pytest.mark.parametrize("case", CASES, ids=[case.form for case in CASES])
def test_a_form_is_read_as_the_document_says(case: Case) -> None:
    if case.refused:
        with pytest.raises(DataError) as caught:
            encoded_of(case)
        assert case.refused in str(caught.value)
        return
    encoded = encoded_of(case)
    assert labels_of(case, encoded) == case.expected
    assert case.note in " ".join(encoded.notes)


def test_the_document_shows_what_the_code_does() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert document(text) == text, "run python -m tests.axformer.data.readings"


def read(values: list[object], names: list[str], labels_as: str | None = None) -> list[int]:
    rows = Rows("data", {"label": values}, labels_as=labels_as)
    return LabelColumn(values, rows, range(1, len(values) + 1)).read(ClassNames(tuple(names))).indices  # type: ignore[arg-type]


@given(NAMES, st.data())
def test_names_mean_their_classes_whatever_they_are(names: list[str], data: st.DataObject) -> None:
    indices = data.draw(st.lists(st.integers(0, len(names) - 1), min_size=1, max_size=20))
    assert read([names[index] for index in indices], names) == indices


@given(NAMES, st.data())
def test_indices_mean_their_classes_where_one_of_them_is_no_name(names: list[str], data: st.DataObject) -> None:
    indices = data.draw(st.lists(st.integers(0, len(names) - 1), min_size=1, max_size=20))
    write = data.draw(st.sampled_from([int, float, str, lambda index: f"{index}.0"]))
    if {str(index) for index in indices} <= set(names):
        assert read([write(index) for index in indices], names, Reading.INDICES) == indices
    else:
        assert read([write(index) for index in indices], names) == indices


@given(NAMES, st.data())
def test_a_part_of_a_column_is_read_as_the_whole(names: list[str], data: st.DataObject) -> None:
    indices = data.draw(st.lists(st.integers(0, len(names) - 1), min_size=2, max_size=20))
    whole = LabelColumn(indices, Rows("data", {"label": indices}), range(1, len(indices) + 1))
    found = whole.read(ClassNames(tuple(names)))
    cut = data.draw(st.integers(1, len(indices) - 1))
    parts = [read(list(part), names, found.reading) for part in (indices[:cut], indices[cut:])]
    assert parts[0] + parts[1] == found.indices


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=6), st.sampled_from(",;\t|"))
def test_quoted_cells_are_read_as_they_are(rows: list[list[str]], between: str) -> None:
    quoted = "".join(
        between.join('"' + cell.replace('"', '""') + '"' for cell in row) + "\r\n" for row in [["a", "b"], *rows]
    )
    found = read_delimited(quoted)
    assert (found.names, found.delimiter) == (["a", "b"], between)
    assert found.rows == rows


@given(st.text(max_size=60))
def test_any_text_is_a_table_or_refused(text: str) -> None:
    for tabs in (False, True):
        try:
            found = read_delimited(text, tabs=tabs)
        except DelimitedError:
            continue
        assert all(len(row) == len(found.names) for row in found.rows)


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        (r'"C:\new \"file\"","1"', [r'C:\new "file"', "1"]),
        (r'"a \"b\" \\c \n, d",1', [r'a "b" \c \n, d', "1"]),
        (r'"a ""b"" \n",1', [r'a "b" \n', "1"]),
    ],
)
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_backslashes_that_escape_nothing_stay(line: str, cells: list[str], delimiter: str) -> None:
    text = "\n".join(("text,label", line)).replace('",', f'"{delimiter}').replace("text,", f"text{delimiter}")
    assert read_delimited(text).rows == [cells]


def test_a_space_before_a_quotation_mark_is_no_part_of_a_cell() -> None:
    assert read_delimited('label, text\n1, "a, ""b"""\n0, "c"\n').rows == [["1", 'a, "b"'], ["0", "c"]]
    assert read_delimited('label, text\n1, "c"\n').rows == [["1", "c"]]


def test_a_space_before_a_quotation_mark_within_a_cell_stays() -> None:
    assert read_delimited('text,label\n"a, ""b"" c", 1\nd, "e" f\n').rows == [['a, "b" c', " 1"], ["d", ' "e" f']]


def test_quotation_marks_end_the_cells_of_one_column() -> None:
    assert read_delimited('text\n"a\nb"\nc\n', tabs=True).rows == [["a\nb"], ["c"]]
    assert read_delimited('text\n"a," he said\n"b\n', tabs=True).rows == [['"a," he said'], ['"b']]
