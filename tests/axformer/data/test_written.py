"""What Python and NumPy print is read back, and nothing else is made of it."""

import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.data.written import is_blank, seen, written_out

SCALARS = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)


@given(st.lists(VALUES, max_size=5))
def test_what_python_prints_is_read_back(value: list[Any]) -> None:
    assert written_out(repr(value)) == value
    assert written_out(repr(tuple(value))) == value


@given(
    st.lists(st.integers(-9, 9) | st.text("ab '\"\\\n", max_size=5), min_size=1, max_size=30),
    st.sampled_from([str, repr]),
)
def test_what_numpy_prints_is_read_back(values: list[Any], write: Any) -> None:
    assert written_out(write(np.array(values, dtype=object))) == values
    numbers = [value for value in values if isinstance(value, int)]
    assert written_out(write(np.array(numbers, dtype=np.int64))) == numbers
    assert written_out(write(np.array(numbers, dtype=np.float32))) == numbers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'text': array(['a b'], dtype=object), 'answer_start': array([3])}", {"text": ["a b"], "answer_start": [3]}),
        ("[np.str_('a'), np.int64(3)]", ["a", 3]),
        ("[list(['a', 'b']) list(['c'])]", [["a", "b"], ["c"]]),
        ("{'a', 'b'}", ["a", "b"]),
        ("{}", {}),
        (str(np.arange(2000)), None),
        ("[os.system('x')]", None),
        ("[__import__('os')]", None),
        ("['a'", None),
        ("[a, b]", None),
        ("{'a': 1, 'a': 2}", None),
        ('{"a": 1, "a": 2}', None),
        ("[" * 5000 + "]" * 5000, None),
        ("[" + "9" * 5000 + "]", None),
        ("no list", None),
    ],
)
def test_a_literal_is_read_or_left(text: str, value: Any) -> None:
    assert written_out(text) == (text if value is None else value)


@given(st.text(max_size=30))
def test_any_text_is_a_value_or_left(text: str) -> None:
    for wrapped in (text, f"[{text}]", f"{{{text}}}", f"({text})", f"array({text})"):
        written_out(wrapped)


@given(
    st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8),
    st.sampled_from("\u200b\u00ad\ufeff\u200f\ufe0f"),
)
def test_texts_that_look_alike_are_one(text: str, invisible: str) -> None:
    shown = seen(text)
    assert seen(unicodedata.normalize("NFD", text)) == shown
    assert seen(f"{invisible}{text}{invisible}") == shown
    assert seen(f" {text}\u00a0") == shown
    assert is_blank(text) == (not shown)


@given(st.text(" \t\n\u00a0\u2003\u3000\u200b\u200d\ufeff\u2800\x00", max_size=6))
def test_what_nobody_sees_is_blank(text: str) -> None:
    assert is_blank(text)
    assert not is_blank(f"{text}?{text}")
