import pytest

from axformer.config.nearest import choice_suggestion, nearest, or_all

KNOWN = ["target_speedup", "target_size", "seed"]


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("speedup", "target_speedup"),
        ("Target-Speedup", "target_speedup"),
        ("sed", "seed"),
        ("size", "target_size"),
        ("colour", None),
        ("", None),
        ("_", None),
        ("seed" * 20, None),
        (3, None),
    ],
)
def test_the_nearest_word_is_suggested_if_one_is_near(word: object, near: str | None) -> None:
    assert nearest(word, KNOWN) == near


def test_where_none_is_near_all_are_listed() -> None:
    assert or_all("sead", KNOWN) == "did you mean seed?"
    assert or_all("colour", KNOWN) == "there are target_speedup, target_size, seed"


def test_only_choices_have_a_suggestion() -> None:
    assert choice_suggestion({"type": "int_type", "input": "sed"}) == ""
    assert choice_suggestion({"type": "enum", "input": "sed", "ctx": {"expected": "'seed' or 'size'"}}) == (
        "did you mean seed?"
    )
