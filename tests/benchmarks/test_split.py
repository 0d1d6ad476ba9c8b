from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.rows import Row
from benchmarks.sets.parts import split

rows = st.lists(st.builds(Row, text=st.text(max_size=3), label=st.sampled_from(["a", "b", "c"])), max_size=40)


@given(rows, st.floats(0, 1), st.integers(0, 9))
def test_a_split_parts_every_class_in_the_same_ratio_and_loses_nothing(
    rows: list[Row], share: float, seed: int
) -> None:
    train, validation = split(rows, share, seed)
    assert Counter(train) + Counter(validation) == Counter(rows)
    classes, held = Counter(row.label for row in rows), Counter(row.label for row in validation)
    assert all(held[label] == round(share * count) for label, count in classes.items())
    assert split(rows, share, seed) == (train, validation)
