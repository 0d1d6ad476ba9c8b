"""Tags in one scheme say the same chunks in another, or are refused."""

from collections.abc import Callable, Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.data.encoding import Encoded
from axformer.tasks.tag_schemes import in_scheme_of, looks_like_iob1
from axformer.tasks.token_classification import TokenClassification

KINDS = ("PER", "geo-loc", "X_Y")
CHUNKS = st.lists(st.tuples(st.sampled_from((*KINDS, "")), st.integers(1, 4)), min_size=1, max_size=6)
"""Sentences: the kind of each chunk, which is empty outside of chunks, and its length."""


def bio(kind: str, length: int) -> list[str]:
    return [f"B-{kind}"] + [f"I-{kind}"] * (length - 1)


def bilou(kind: str, length: int) -> list[str]:
    return [f"U-{kind}"] if length == 1 else [f"B-{kind}"] + [f"I-{kind}"] * (length - 2) + [f"L-{kind}"]


def bioes(kind: str, length: int) -> list[str]:
    return [tag.replace("U-", "S-").replace("L-", "E-") for tag in bilou(kind, length)]


def suffixed(kind: str, length: int) -> list[str]:
    return [f"{kind}-{tag[0]}" for tag in bio(kind, length)]


def underscored(kind: str, length: int) -> list[str]:
    return [f"{tag[0].lower()}_{kind}" for tag in bio(kind, length)]


SCHEMES: Mapping[str, Callable[[str, int], list[str]]] = {
    "bio": bio, "bilou": bilou, "bioes": bioes, "suffixed": suffixed, "underscored": underscored,
}  # fmt: skip


def names(scheme: Callable[[str, int], list[str]]) -> list[str]:
    return sorted({tag for kind in KINDS for length in (1, 3) for tag in scheme(kind, length)} | {"O"})


def tags(scheme: Callable[[str, int], list[str]], chunks: list[tuple[str, int]]) -> list[str]:
    return [tag for kind, length in chunks for tag in (scheme(kind, length) if kind else ["O"] * length)]


@given(
    st.lists(CHUNKS, min_size=1, max_size=4),
    st.sampled_from(sorted(SCHEMES)),
    st.sampled_from(["bio", "bilou", "bioes"]),
)
def test_chunks_are_the_same_in_the_scheme_of_the_model(
    sentences: list[list[tuple[str, int]]], given: str, model: str
) -> None:
    data = [tags(SCHEMES[given], chunks) for chunks in sentences]
    expected = [tags(SCHEMES[model], chunks) for chunks in sentences]
    found = in_scheme_of(names(SCHEMES[model]), data)
    assert (data if found is None else found[0]) == expected
    assert found is not None or given == model or not any(kind for chunks in sentences for kind, _ in chunks)


@given(st.lists(CHUNKS, min_size=1, max_size=4))
def test_what_marks_do_not_say_is_refused(sentences: list[list[tuple[str, int]]]) -> None:
    bare = [tags(lambda kind, length: [kind] * length, chunks) for chunks in sentences]
    follows = any(one == other != "O" for row in bare for one, other in pairwise(row))
    if follows:
        with pytest.raises(ValueError, match="are bare names and the model's BIO, and only B says"):
            in_scheme_of(names(bio), bare)
    elif found := in_scheme_of(names(bio), bare):
        assert found[0] == [[tag if tag == "O" else f"B-{tag}" for tag in row] for row in bare]


def test_other_tags_are_left_alone() -> None:
    assert in_scheme_of(["NOUN", "VERB", "S", "I"], [["NOUN", "S"], ["ADV"]]) is None
    assert in_scheme_of(names(bio), [["B-ORG", "O"]]) is None, "a kind that the model lacks is no other scheme"
    assert in_scheme_of(["O", "PER"], [["B-PER", "I-PER", "O"]]) == (
        [["PER", "PER", "O"]],
        "are BIO and the model's bare names, and are converted",
    )


@pytest.mark.parametrize(
    ("sentences", "is_iob1"),
    [
        ([["I-PER", "I-PER", "B-PER", "O"]], True),
        ([["O", "I-PER"]], True),
        ([["B-PER", "I-PER"]], False),
        ([["I-PER"], ["B-PER"]], False),
        ([[None, "I-PER"]], False),
        ([["O"]], False),
    ],
)
def test_iob1_is_told_by_chunks_that_begin_with_i(sentences: list[list[str | None]], is_iob1: bool) -> None:
    assert looks_like_iob1(names(bio), sentences) is is_iob1
    assert not looks_like_iob1(names(bioes), [[tag and "O" for tag in row] for row in sentences])


@given(st.lists(CHUNKS, min_size=30, max_size=40), st.booleans())
def test_tags_of_iob1_stop_a_model_of_bio_and_no_other(
    sentences: list[list[tuple[str, int]]], answers_bio: bool
) -> None:
    known = names(bio)
    task = TokenClassification(tuple(known))
    right = [tags(bio, [("PER", 2), *chunks]) for chunks in sentences]
    given_tags = [iob1(row) for row in right]
    answers = [[known.index(tag) for tag in row] for row in (right if answers_bio else given_tags)]
    labels = [[known.index(tag) for tag in row] for row in given_tags]
    encoded = Encoded({"input_ids": labels}, labels, list(range(len(labels))), per_token=True)
    misread = task.standing(answers, encoded, None).misread
    assert (misread is not None and "as in IOB1, where the model answers B" in misread) is answers_bio


def iob1(row: list[str]) -> list[str]:
    before = ["O", *row]
    return [tag if tag[2:] == last[2:] else tag.replace("B-", "I-") for last, tag in zip(before, row, strict=False)]
