import pytest

from axformer.tasks.tag_schemes import chunks_of, count_chunks, is_chunk_scheme


@pytest.mark.parametrize(
    ("tags", "chunks"),
    [
        ("O O", set()),
        ("B-X I-X O", {("X", 0, 1)}),
        ("B-X B-X", {("X", 0, 0), ("X", 1, 1)}),
        ("B-X I-Y", {("X", 0, 0), ("Y", 1, 1)}),
        ("O I-X I-X", {("X", 1, 2)}),
        ("B-X-Z I-X-Z", {("X-Z", 0, 1)}),
        ("B-X O I-X", {("X", 0, 0), ("X", 2, 2)}),
    ],
)
def test_chunks_are_those_of_conlleval(tags: str, chunks: set[tuple[str, int, int]]) -> None:
    assert chunks_of(tags.split()) == chunks


def test_counts_worked_by_hand() -> None:
    expected = ["B-NP", "I-NP", "B-VP", "B-NP", "I-NP", "O"]
    assert count_chunks(expected, expected) == (3, 3, 3)
    assert count_chunks(expected, ["B-NP", "I-NP", "B-VP", "B-NP", "O", "B-PP"]) == (2, 4, 3)
    assert count_chunks(expected, ["B-NP", "I-NP", "B-NP", "B-NP", "I-NP", "O"]) == (2, 3, 3)
    assert count_chunks(expected, ["O", "O", "O", "O", "O", "O"]) == (0, 0, 3)


def test_a_scheme_is_known_by_its_names() -> None:
    assert is_chunk_scheme(["O", "B-NP", "I-NP"])
    assert not is_chunk_scheme(["NOUN", "VERB", "O"])
    assert not is_chunk_scheme(["LABEL_0", "LABEL_1"])
    assert not is_chunk_scheme(["O"])
