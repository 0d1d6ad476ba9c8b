"""The names of a model's classes: what two maps agree on, and no choice between maps that contradict each other."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.errors import CheckpointError
from axformer.intake.checkpoint import from_memory, load_checkpoint
from axformer.intake.label_names import label_maps, label_names
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_model, tiny_tokenizer

ABC = ("a", "b", "c")
STRAIGHT = {"0": "a", "1": "b", "2": "c"}
INVERSE = {"a": 0, "b": 1, "c": 2}
DEFAULTS = {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}

READ: dict[str, tuple[dict[str, Any], tuple[str, ...] | None]] = {
    "nothing": ({}, None),
    "null": ({"id2label": None, "label2id": None, "num_labels": None}, None),
    "empty maps": ({"id2label": {}, "label2id": {}}, None),
    "a number alone": ({"num_labels": 3}, tuple(DEFAULTS)),
    "a number as text": ({"num_labels": "3"}, tuple(DEFAULTS)),
    "defaults": ({"id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}, "label2id": DEFAULTS}, tuple(DEFAULTS)),
    "fewer defaults than classes": ({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "num_labels": 3}, tuple(DEFAULTS)),
    "both maps": ({"id2label": STRAIGHT, "label2id": INVERSE}, ABC),
    "both maps in another order": ({"id2label": dict(reversed(STRAIGHT.items())), "label2id": INVERSE}, ABC),
    "id2label alone": ({"id2label": STRAIGHT}, ABC),
    "id2label with whole numbers": ({"id2label": {0: "a", 1: "b", 2: "c"}}, ABC),
    "label2id alone": ({"label2id": INVERSE}, ABC),
    "names beside default numbers": ({"id2label": STRAIGHT, "label2id": DEFAULTS}, ABC),
    "default names beside numbers": ({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "label2id": INVERSE}, ABC),
    "one default among names": ({"id2label": STRAIGHT | {"1": "LABEL_1"}, "label2id": INVERSE}, ABC),
    "numbers as texts": ({"id2label": STRAIGHT, "label2id": {"a": "0", "b": "1", "c": "2"}}, ABC),
    "numbers with a point": ({"label2id": {"a": 0.0, "b": 1.0, "c": "2.0"}}, ABC),
    "numbers of null": ({"id2label": STRAIGHT, "label2id": INVERSE | {"a": None}}, ABC),
    "label2id with fewer": ({"id2label": STRAIGHT, "label2id": {"b": 1}}, ABC),
    "halves": ({"id2label": {"0": "a"}, "label2id": {"b": 1, "c": 2}}, ABC),
    "label2id turned around": ({"id2label": STRAIGHT, "label2id": STRAIGHT}, ABC),
    "id2label turned around": ({"id2label": INVERSE, "label2id": INVERSE}, ABC),
    "each in the other's place": ({"id2label": INVERSE, "label2id": STRAIGHT}, ABC),
    "other names beside": ({"id2label": STRAIGHT, "label2id": INVERSE | {"A": 0}}, ABC),
    "names that are numbers": ({"id2label": {"0": "1", "1": "2"}, "label2id": {"1": 0, "2": 1}}, ("1", "2")),
    "names that are not texts": ({"id2label": {"0": False, "1": True}, "label2id": {"false": 0, "true": 1}}, ("false", "true")),
    "the number of the names": ({"id2label": STRAIGHT, "label2id": INVERSE, "num_labels": 3}, ABC),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_what_is_consistent_is_read(name: str) -> None:
    raw, names = READ[name]
    assert label_names(raw) == names


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "swapped": ({"id2label": STRAIGHT, "label2id": {"a": 2, "b": 1, "c": 0}}, "class 0 is called 'a' and 'c'"),
    "another name": ({"id2label": STRAIGHT, "label2id": {"a": 0, "b": 1, "d": 2}}, "class 2 is called 'c' and 'd'"),
    "one name for all": ({"id2label": {"0": "a", "1": "a", "2": "a"}, "label2id": {"a": 2}}, "both called 'a'"),
    "one name for two": ({"id2label": {"0": "a", "1": "b", "2": "a"}}, "classes 0 and 2 are both called 'a'"),
    "a name that went elsewhere": ({"id2label": {"0": "a", "1": "b"}, "label2id": {"a": 2}}, "both called 'a'"),
    "two names": ({"label2id": {"a": 0, "A": 0, "b": 1}}, "class 0 is called 'A' and 'a'"),
    "an index twice": ({"id2label": {"0": "a", "0.0": "b"}}, "class 0 is called 'a' and 'b'"),
    "more by number": ({"id2label": STRAIGHT, "label2id": INVERSE, "num_labels": 5}, "class 3 has no name.*num_labels is 5"),
    "fewer by number": ({"id2label": STRAIGHT, "num_labels": 2}, "3 classes have names, and num_labels is 2"),
    "counted from one": ({"id2label": {"1": "a", "2": "b"}}, "class 0 has no name"),
    "a gap": ({"label2id": {"a": 0, "c": 2}}, "class 1 has no name"),
    "a gap to the end of the world": ({"label2id": {"a": 10**15}}, "class 0 has no name"),
    "half a number": ({"label2id": {"a": 0.5, "b": 1}}, "label2id has 0.5 where a whole number"),
    "a negative number": ({"label2id": {"a": -1, "b": 0}}, "label2id has -1 where"),
    "a truth as number": ({"label2id": {"a": False, "b": True}}, "label2id has false where"),
    "names alone": ({"id2label": {"one": "a", "two": "b"}}, "id2label has \"one\" where"),
    "a list": ({"id2label": ["a", "b"]}, "id2label is not an object"),
    "a number beyond memory": ({"num_labels": 1e300}, "is more than the 100000 that is taken"),
    "a text of digits beyond memory": ({"num_labels": "9" * 400}, "is more than the 100000 that is taken"),
    "a number of words": ({"num_labels": "three"}, "num_labels has \"three\" where"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_contradiction_is_told_with_both_sides(name: str) -> None:
    raw, message = REFUSED[name]
    with pytest.raises(ValueError, match=message) as error:
        label_names(raw)
    assert len(str(error.value)) < 1000


names = st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=6, unique=True).map(tuple)
indices = st.sampled_from([int, float, str, lambda index: f"{index}.0"])


@st.composite
def spellings(draw: st.DrawFn, classes: tuple[str, ...]) -> dict[str, Any]:
    """A configuration that says the same in some way: one map in full, the other in part, turned around, or as it was."""
    write = draw(indices)
    straight = {str(index): name for index, name in enumerate(classes)}
    inverse = {name: write(index) for index, name in enumerate(classes) if not name.strip().isascii() or name.isalpha()}
    part = {name: index for name, index in inverse.items() if draw(st.booleans())}
    left = {f"LABEL_{index}": index for index in range(len(classes))}
    other = draw(st.sampled_from([None, {}, inverse, part, left, straight if inverse else None]))
    return {"id2label": straight, "label2id": other} | draw(st.sampled_from([{}, {"num_labels": len(classes)}]))


@given(names.flatmap(lambda classes: st.tuples(st.just(classes), spellings(classes))))
def test_a_whole_map_names_the_classes_however_the_other_is_spelled(
    case: tuple[tuple[str, ...], dict[str, Any]],
) -> None:
    classes, raw = case
    assert label_names(json.loads(json.dumps(raw))) == classes


@given(names)
def test_what_was_read_is_read_again(classes: tuple[str, ...]) -> None:
    assert label_names(label_maps(classes)) == classes


keys = st.text(max_size=3) | st.integers(-2, 4).map(str)
values = st.none() | st.booleans() | st.integers(-2, 4) | st.floats() | st.text(max_size=3)
maps = st.none() | st.dictionaries(keys, values, max_size=4) | values


@given(st.fixed_dictionaries({}, optional={"id2label": maps, "label2id": maps, "num_labels": values}))
def test_any_maps_give_names_that_are_unlike_or_a_reason(raw: dict[str, Any]) -> None:
    try:
        found = label_names(raw)
    except ValueError:
        return
    assert found is None or (len(set(found)) == len(found) > 0 and label_names(label_maps(found)) == found)


def change_labels(directory: Path, **labels: object) -> Path:
    path = directory / "config.json"
    known = {key: value for key, value in json.loads(path.read_text()).items() if key not in ("id2label", "label2id")}
    path.write_text(json.dumps(known | labels))
    return directory


@pytest.mark.parametrize(
    "labels",
    [
        {"id2label": STRAIGHT},
        {"label2id": INVERSE},
        {"id2label": STRAIGHT, "label2id": DEFAULTS},
        {"id2label": STRAIGHT, "label2id": INVERSE | {"a": None}},
        {"id2label": INVERSE, "label2id": STRAIGHT},
    ],
)
def test_a_loaded_model_has_two_maps_that_are_the_inverse_of_each_other(tmp_path: Path, labels: dict[str, Any]) -> None:
    saved = save_tiny_checkpoint(tmp_path, tiny_config(labels=3))
    config = load_checkpoint(change_labels(saved, **labels)).model.config
    assert (config.id2label, config.label2id, config.num_labels) == (dict(enumerate(ABC)), INVERSE, 3)


def test_a_checkpoint_whose_maps_contradict_each_other_is_refused(tmp_path: Path) -> None:
    saved = save_tiny_checkpoint(tmp_path, tiny_config(labels=3))
    change_labels(saved, id2label=STRAIGHT, label2id={"a": 2, "b": 1, "c": 0})
    with pytest.raises(
        CheckpointError, match=r"config\.json: class 0 is called 'a' and 'c' \(id2label is .*label2id is "
    ):
        load_checkpoint(saved)


def test_a_model_in_memory_is_judged_alike() -> None:
    model = tiny_model(tiny_config(labels=3))
    model.config.id2label = dict(enumerate(ABC))  # and label2id stays at its default
    assert from_memory(model, tiny_tokenizer()).model.config.label2id == INVERSE
    model.config.label2id = {"a": 1, "b": 0, "c": 2}
    with pytest.raises(CheckpointError, match="class 0 is called 'a' and 'b'"):
        from_memory(model, tiny_tokenizer())
