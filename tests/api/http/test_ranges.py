"""A range is a slice: whatever range is asked for, the bytes are those of the slice, or there is a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.errors import RangeError
from api.http.downloads import parse_range

SIZES = st.integers(0, 300)
NUMBERS = st.integers(0, 400)


@given(size=SIZES, first=NUMBERS, last=NUMBERS)
def test_first_to_last_is_a_slice(size, first, last):
    content, header = bytes(index % 251 for index in range(size)), f"bytes={first}-{last}"
    if last < first:
        assert parse_range(header, size) is None
    elif first >= size:
        with pytest.raises(RangeError) as raised:
            parse_range(header, size)
        assert raised.value.headers == {"Content-Range": f"bytes */{size}"}
    else:
        found = parse_range(header, size)
        assert content[found.start : found.stop] == content[first : last + 1]


@given(size=st.integers(1, 300), first=NUMBERS)
def test_open_end_goes_to_the_end(size, first):
    if first < size:
        assert parse_range(f"bytes={first}-", size) == range(first, size)
    else:
        with pytest.raises(RangeError):
            parse_range(f"bytes={first}-", size)


@given(size=st.integers(1, 300), length=st.integers(1, 400))
def test_suffix_is_the_end_of_the_file(size, length):
    content = bytes(size)
    found = parse_range(f"bytes=-{length}", size)
    assert content[found.start : found.stop] == content[-length:]


@pytest.mark.slow
@given(header=st.one_of(st.text(max_size=20), st.from_regex(r"bytes=[0-9,\- ]{0,12}", fullmatch=True)), size=SIZES)
def test_any_header_gives_a_valid_range_or_none_or_an_error(header, size):
    try:
        found = parse_range(header, size)
    except RangeError:
        return
    assert found is None or 0 <= found.start < found.stop <= size


@pytest.mark.parametrize("header", ["bytes=-", "bytes=0-1,4-5", "lines=0-1", "bytes 0-1", "bytes=a-b", "", "bytes=١-٢"])
def test_what_is_no_single_range_of_bytes_is_ignored(header):
    assert parse_range(header, 10) is None


def test_numbers_of_any_length_are_taken():
    assert parse_range("bytes=2-" + "9" * 5000, 10) == range(2, 10)
