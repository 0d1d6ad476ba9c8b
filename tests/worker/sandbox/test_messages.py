from typing import Any

import pytest

from worker.sandbox.messages import Message, cut, storable_json


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


def test_texts_of_any_length_become_messages() -> None:
    text = "a\0" + "b" * 10_000_000 + "\ud800"
    assert cut(text).startswith("ab")
    assert cut(text, end=True).endswith("b?")
    assert len(cut(text)) < len(cut(text, end=True)) < len(text)
