"""The demo's data: the split is fair, the same everywhere, and lets nothing leak from one part to another."""

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.demo_data import files_of, labelled, part_of, place_of, split, words_of
from benchmarks.rows import Row

RATED = st.lists(st.tuples(st.floats(-4, 4), st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)))


@given(RATED)
def test_no_sentence_is_in_two_parts_or_twice_in_one(rated):
    parts = split(labelled(rated))
    words = [words_of(row.text) for rows in parts.values() for row in rows]
    assert len(words) == len(set(words))


@given(RATED)
def test_the_parts_hold_all_labelled_sentences_and_no_others(rated):
    rows = list(labelled(rated))
    parts = split(rows)
    assert sorted(row.text for part in parts.values() for row in part) == sorted(row.text for row in rows)


@given(RATED, st.integers(0, 10), st.integers(0, 10))
def test_only_the_sentences_for_validation_are_in_two_files(rated, trained_on, most):
    parts = split(labelled(rated))
    texts = {name: [row.text for row in rows] for name, rows in files_of(parts, trained_on, most).items()}
    validation = texts.pop("validation.jsonl")
    assert texts["more.jsonl"][: len(validation)] == validation
    assert len(texts["more.jsonl"]) <= max(most, len(validation))
    assert sorted(text for file in texts.values() for text in file) == sorted(
        row.text for part in parts.values() for row in part
    )


@given(RATED, st.randoms())
def test_the_split_does_not_depend_on_the_order_of_the_source(rated, shuffle):
    rows = list({words_of(row.text): row for row in labelled(rated)}.values())
    shuffled = shuffle.sample(rows, len(rows))
    assert split(rows) == split(shuffled)


@given(st.text())
def test_case_and_punctuation_do_not_move_a_sentence(sentence):
    assert part_of(sentence) == part_of(f" {sentence} !")
    assert 0 <= place_of(sentence) <= 1


def test_places_are_known_and_do_not_change():
    assert [part_of(text) for text in ("A fine film.", "a fine FILM", "Dull.")] == ["train", "train", "train"]
    assert place_of("A fine film.") == 0.7295961973996248


def test_sentences_without_a_clear_side_are_left_out():
    rated = [(0.5, "so so"), (-0.5, "well"), (0.0, "a film"), (0.6, "good"), (-3.0, "bad"), (2.0, "GOOD!")]
    assert list(labelled(rated)) == [Row("good", "positive"), Row("bad", "negative")]


def test_the_shares_of_the_parts_are_as_told():
    parts = split(Row(f"sentence number {number}", "positive") for number in range(4000))
    shares = {name: len(rows) / 4000 for name, rows in parts.items()}
    assert abs(shares["validation"] - 0.03) < 0.01
    assert abs(shares["test"] - 0.15) < 0.03
