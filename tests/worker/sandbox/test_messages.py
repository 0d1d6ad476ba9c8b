from typing import Any

import pytest
from pydantic import ValidationError

from axformer.intake.limits import DIMENSIONS
from axformer.plan.elements import Dimensions
from worker.sandbox.messages import Message, Shape, cut, storable_json


class Anything(Message):
    value: Any


class Number(Message):
    value: float


@pytest.mark.parametrize("value", [2**63, [-(2**64)], 10**4000, "a\0b", {"a\0": 1}], ids=range(5))
def test_what_cannot_be_stored_or_shown_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="holds"):
        storable_json(Anything(value=value))


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_no_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        storable_json(Number(value=value))


def test_what_can_be_stored_stays_as_it_is() -> None:
    value = {"a": [1, -(2**62), 0.5, None, True, "é"]}
    assert storable_json(Anything(value=value)) == {"value": value}


LARGEST = {
    "layers": DIMENSIONS["num_hidden_layers"],
    "heads": DIMENSIONS["num_attention_heads"],
    "hidden_size": DIMENSIONS["hidden_size"],
    "intermediate_size": DIMENSIONS["intermediate_size"],
}


def test_a_model_may_be_as_large_as_one_that_is_let_in() -> None:
    assert Shape(**LARGEST).dimensions == Dimensions(**LARGEST)


@pytest.mark.parametrize("name", LARGEST)
def test_no_process_may_claim_a_larger_model_than_is_let_in(name: str) -> None:
    with pytest.raises(ValidationError, match=name):
        Shape(**LARGEST | {name: LARGEST[name] + 1})


def test_texts_of_any_length_become_messages() -> None:
    text = "a\0" + "b" * 10_000_000 + "\ud800"
    assert cut(text).startswith("ab")
    assert cut(text, end=True).endswith("b?")
    assert len(cut(text)) < len(cut(text, end=True)) < len(text)
