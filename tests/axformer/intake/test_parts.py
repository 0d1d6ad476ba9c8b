"""The validation rows are split into a part that decides and a part that confirms."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForTokenClassification

from axformer.config import make_config
from axformer.data.reading import rows_of
from axformer.errors import ConfigError, InputError
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.intake.parts import confirming_places, split_off
from axformer.opening import Inputs
from axformer.pruning import prune
from axformer.run import PruningRun
from tests.tiny_models import tagged_rows, tiny_config, tiny_head, tiny_model, tiny_rows, tiny_tokenizer

CHECKPOINT = from_memory(tiny_model(), tiny_tokenizer())
ROWS = rows_of(tiny_rows(60, pairs=True))


@given(st.integers(4, 200), st.floats(0.01, 0.5), st.integers(0, 5), st.integers(1, 4))
def test_each_class_confirms_with_its_share(count: int, share: float, seed: int, classes: int) -> None:
    labels = [place % classes for place in range(count)]
    places = confirming_places(count, labels, share, seed)
    assert len(set(places)) == len(places) == int(count * share)
    assert places == confirming_places(count, labels, share, seed)
    every, drawn = Counter(labels), Counter(labels[place] for place in places)
    assert all(abs(drawn[label] - share * number) < 1 for label, number in every.items())


def test_numbers_that_are_no_classes_confirm_along_their_order() -> None:
    labels = [float(str(row["label"])) for row in tiny_rows(100, labels=1)]
    ranks = sorted(range(100), key=labels.__getitem__)
    drawn = set(confirming_places(100, labels, 0.25, seed=1))
    assert [sum(place in drawn for place in ranks[start : start + 4]) for start in range(0, 100, 4)] == [1] * 25


def test_rows_without_a_label_are_drawn_by_the_seed() -> None:
    first, second = (confirming_places(50, None, 0.5, seed) for seed in (0, 1))
    assert len(first) == len(second) == 25
    assert first != second


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_parts_are_all_rows_and_share_none(share: float) -> None:
    config = make_config("paper", {"confirm": share})
    deciding, confirming = split_off(prepare(ROWS, CHECKPOINT, config), CHECKPOINT, config)
    assert confirming is not None
    texts = [data.rows.table["text"] for data in (deciding, confirming)]
    assert len(texts[1]) == round(60 * share)
    assert sorted(texts[0] + texts[1]) == sorted(ROWS.table["text"])


def test_parts_that_are_too_small_are_refused() -> None:
    config = make_config("paper", {"confirm": 0.1})
    data = prepare(rows_of(tiny_rows(4)), CHECKPOINT, config)
    with pytest.raises(InputError, match=r"confirm=0\.1 of the 4 validation rows is less than one row"):
        PruningRun(Inputs(CHECKPOINT, data), config)


def test_a_part_of_one_class_may_confirm_and_not_decide() -> None:
    config = make_config("paper", {"confirm": 0.25})
    mixed, rare = (
        [{"text": f"word{place}", "label": label} for place, label in enumerate(labels)]
        for labels in ((0, 0, 1, 1), (0, 0, 0, 1))
    )
    deciding, confirming = split_off(prepare(rows_of(mixed), CHECKPOINT, config), CHECKPOINT, config)
    assert confirming is not None
    assert (len(deciding.rows), len(confirming.rows)) == (3, 1)
    with pytest.raises(InputError, match=r"the part that decides\)' has only one class, '0'"):
        split_off(prepare(rows_of(rare), CHECKPOINT, config), CHECKPOINT, config)


@pytest.mark.parametrize("share", [-0.1, 0.51, math.nan])
def test_more_than_half_of_the_rows_cannot_confirm(share: float) -> None:
    with pytest.raises(ConfigError, match="confirm"):
        make_config("paper", {"confirm": share})


def test_sentences_with_one_tag_everywhere_do_not_decide() -> None:
    config = tiny_config(labels=3)
    config.id2label = dict(enumerate(("O", "B-PER", "I-PER")))
    model = tiny_head(AutoModelForTokenClassification, config)
    with pytest.raises(InputError, match=r"has only one tag, 'O', in its 6 rows, and rows that decide must differ"):
        prune(model, tiny_tokenizer(), tagged_rows(6, ["O"]))
