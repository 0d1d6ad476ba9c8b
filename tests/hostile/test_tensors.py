"""Files of weights whose headers lie, and weights that are no numbers."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from axformer.errors import CheckpointError
from axformer.intake.headers import read_header
from axformer.intake.weights import read_weights
from tests.hostile.checkpoints import Change, changed_header, must_be_refused, with_header, written

Header = dict[str, Any]
FIRST = "bert.embeddings.LayerNorm.bias"


def of_first(**changes: object) -> Change:
    """Change what the header says of one tensor."""
    return changed_header(lambda header, data: with_header(header | {FIRST: header[FIRST] | changes}, data))


def renamed(name: str) -> Callable[[Header, bytes], bytes]:
    """Give one tensor another name."""
    return lambda header, data: with_header(
        {name if key == FIRST else key: value for key, value in header.items()}, data
    )


def shifted(header: Header, data: bytes) -> bytes:
    """All tensors eight bytes later: the first eight belong to none."""
    moved = {
        name: value if name == "__metadata__" else value | {"data_offsets": [at + 8 for at in value["data_offsets"]]}
        for name, value in header.items()
    }
    return with_header(moved, bytes(8) + data)


def overlapping(header: Header, data: bytes) -> bytes:
    """Two names for the same bytes."""
    return with_header(header | {"twin": header[FIRST]}, data)


def weights_with(value: float) -> Change:
    """One number of one tensor is another."""

    def spoil(directory: Path) -> None:
        path = directory / "model.safetensors"
        tensors = load_file(path)
        tensors[FIRST][3] = value
        save_file(tensors, path, {"format": "pt"})

    return spoil


def linked_out(directory: Path) -> None:
    """The weights are a pipe's name without a pipe."""
    (directory / "model.safetensors").unlink()
    (directory / "model.safetensors").symlink_to(directory / "nowhere")


DEEP = b'{"a":' * 5000 + b"1" + b"}" * 5000
ONE = b'{"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}'
TWICE = b'{"a": ' + ONE + b', "a": ' + ONE + b"}"
CASES: dict[str, tuple[Change, str]] = {
    "empty file": (written("model.safetensors", b""), "claims a header of 0 bytes, which the file of 0 bytes"),
    "seven bytes": (written("model.safetensors", b"1234567"), "which the file of 7 bytes cannot hold"),
    "length alone": (written("model.safetensors", struct.pack("<Q", 2)), "header of 2 bytes"),
    "no length": (written("model.safetensors", bytes(8)), "header cannot be read"),
    "header beyond the file": (
        changed_header(lambda header, data: with_header(header, data, length=10**9)), "header of 1000000000 bytes",
    ),
    "header of all memory": (
        changed_header(lambda header, data: with_header(header, data, length=2**64 - 1)), "cannot hold",
    ),
    "header of a negative length": (
        changed_header(lambda header, data: with_header(header, data, length=2**63)), "cannot hold",
    ),
    "header cut": (changed_header(lambda header, data: with_header(header, data, length=40)), "header cannot be read"),
    "header of no JSON": (changed_header(lambda _, data: with_header(b"{'a': 1}", data)), "header cannot be read"),
    "header of no UTF-8": (changed_header(lambda _, data: with_header(b'{"\xff": 1}', data)), "is not UTF-8"),
    "header a list": (changed_header(lambda _, data: with_header([], data)), "header is not an object"),
    "header nested": (changed_header(lambda _, data: with_header(DEEP, data)), "nested more than 32 deep"),
    "header a key twice": (changed_header(lambda *_: with_header(TWICE, b"1")), "the key 'a' twice"),
    "header NaN": (changed_header(lambda _, data: with_header(b'{"a": NaN}', data)), "NaN, which is not a number"),
    "header a huge number": (changed_header(lambda *_: with_header(b'{"a": ' + b"9" * 5000 + b"}", b"")), "cannot be read"),
    "notes no texts": (
        changed_header(lambda header, data: with_header(header | {"__metadata__": {"format": 1}}, data)), "no.* texts",
    ),
    "notes a list": (changed_header(lambda header, data: with_header(header | {"__metadata__": []}, data)), "no.* texts"),
    "no tensors but bytes": (changed_header(lambda _, data: with_header({}, data)), "declares 0 bytes"),
    "no tensors": (changed_header(lambda *_: with_header({}, b"")), "does not hold all weights|missing"),
    "type unknown": (of_first(dtype="F1024"), "type 'F1024', which is not read"),
    "type an object": (of_first(dtype={"a": 1}), "which is not read"),
    "type of half a byte": (of_first(dtype="F4"), "type 'F4', which is not read"),
    "type of another size": (of_first(dtype="F64"), "its shape needs another number"),
    "shape negative": (of_first(shape=[-32]), "a shape of other things"),
    "shape too large": (of_first(shape=[2**62]), "a shape of other things"),
    "shape whose product wraps": (of_first(shape=[2**32, 2**32, 0]), "its shape needs another number"),
    "shape with more": (of_first(shape=[33]), "its shape needs another number"),
    "shape of many dimensions": (of_first(shape=[1] * 9), "a shape of other things"),
    "shape a text": (of_first(shape="32"), "a shape of other things"),
    "shape of truths": (of_first(shape=[True] * 2), "a shape of other things"),
    "shape of fractions": (of_first(shape=[32.0]), "a shape of other things"),
    "place with one end": (of_first(data_offsets=[0]), "a place that is not begin and end"),
    "place beyond the file": (of_first(data_offsets=[10**9, 10**9 + 128]), "begins at byte|declares|belong to none"),
    "place backwards": (of_first(data_offsets=[128, 0]), "its shape needs another number"),
    "place negative": (of_first(data_offsets=[-128, 0]), "a place that is not begin and end"),
    "place over another": (of_first(data_offsets=[64, 192]), "begins at byte|belong to none|the one before"),
    "two names for one place": (changed_header(overlapping), "the one before it ends at"),
    "a hole before all": (changed_header(shifted), "belong to none"),
    "bytes behind all": (changed_header(lambda header, data: with_header(header, data + b"more")), "the file has"),
    "bytes missing": (changed_header(lambda header, data: with_header(header, data[:-4])), "the file has"),
    "field missing": (
        changed_header(lambda header, data: with_header(header | {FIRST: {"dtype": "F32"}}, data)), "other fields",
    ),
    "field more": (of_first(code="import os"), "other fields"),
    "tensor a list": (changed_header(lambda header, data: with_header(header | {FIRST: []}, data)), "other fields"),
    "name empty": (changed_header(renamed("")), "empty, too long or unprintable"),
    "name long": (changed_header(renamed("a" * 600)), "empty, too long or unprintable"),
    "name unprintable": (changed_header(renamed("a\x00\x1b[2J")), "empty, too long or unprintable"),
    "name half a character": (changed_header(renamed("a\ud800")), "empty, too long or unprintable"),
    "name of another": (changed_header(renamed("other")), "does not hold all weights"),
    "weight infinite": (weights_with(float("inf")), "infinite or not numbers, in bert.embeddings"),
    "weight no number": (weights_with(float("nan")), "infinite or not numbers"),
    "a link to nowhere": (linked_out, r"model\.safetensors is a link to .*, which is gone"),
}  # fmt: skip


def test_hostile_tensors_are_refused(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for name, (change, message) in CASES.items():
        with subtests.test(name):
            must_be_refused(whole, tmp_path_factory.mktemp("case"), change, message)


def test_too_many_tensors_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axformer.intake.headers.TENSORS", 10)
    header = {str(number): {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for number in range(11)}
    (tmp_path / "a.safetensors").write_bytes(with_header(header, b""))
    with pytest.raises(ValueError, match="at most 10 are read"):
        read_header(tmp_path / "a.safetensors")


def two_shards(directory: Path) -> dict[str, str]:
    """Split the weights, and give the file of each tensor."""
    tensors = load_file(directory / "model.safetensors")
    (directory / "model.safetensors").unlink()
    places = {name: f"model-0000{1 + place % 2}-of-00002.safetensors" for place, name in enumerate(tensors)}
    for file in set(places.values()):
        save_file({name: tensors[name] for name in tensors if places[name] == file}, directory / file, {"format": "pt"})
    return places


INDEXES: dict[str, tuple[Callable[[dict[str, str]], object], str]] = {
    "no JSON": (lambda _: b"{", "cannot be loaded: model.safetensors.index.json"),
    "a list": (lambda places: [places], "no weight_map"),
    "empty": (lambda _: {"weight_map": {}}, "no weight_map"),
    "no texts": (lambda places: {"weight_map": places | {FIRST: 1}}, "names '1', which is not a file of weights"),
    "a path out": (
        lambda places: {"weight_map": places | {FIRST: "../../etc/passwd"}},
        "not a file of weights beside it",
    ),
    "a pickle": (
        lambda places: {"weight_map": places | {FIRST: "pytorch_model.bin"}},
        "not a file of weights beside it",
    ),
    "absent": (lambda places: {"weight_map": places | {FIRST: "z.safetensors"}}, "'z.safetensors', which is not there"),
    "another's tensor": (lambda places: {"weight_map": places | {"other": places[FIRST]}}, "which lacks it"),
    "a tensor left out": (
        lambda places: {"weight_map": {name: file for name, file in places.items() if name != FIRST}},
        "every tensor of its files once",
    ),
}


def indexed(make: Callable[[dict[str, str]], object]) -> Change:
    """Two shards with an index of them."""

    def change(directory: Path) -> None:
        index = make(two_shards(directory))
        text = index if isinstance(index, bytes) else json.dumps(index).encode()
        (directory / "model.safetensors.index.json").write_bytes(text)

    return change


def test_an_index_that_lies_is_refused(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for name, (make, message) in INDEXES.items():
        with subtests.test(name):
            must_be_refused(whole, tmp_path_factory.mktemp("case"), indexed(make), message)


def test_shards_without_an_index_are_refused(whole: Path, tmp_path: Path) -> None:
    must_be_refused(whole, tmp_path, two_shards, "neither model.safetensors nor model.safetensors.index.json")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
tensors = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "U8", "BF16", "F4", 1]) | values,
        "shape": st.lists(st.integers(-1, 2**65), max_size=3) | values,
        "data_offsets": st.lists(st.integers(-1, 70), min_size=2, max_size=2) | values,
    }
)
headers = st.dictionaries(st.text(max_size=5) | st.just("__metadata__"), tensors | values, max_size=4)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    header=headers | st.binary(max_size=60), data=st.binary(max_size=64), length=st.none() | st.integers(0, 2**64 - 1)
)
def test_any_header_is_read_or_refused(tmp_path: Path, header: object, data: bytes, length: int | None) -> None:
    """What is read lies inside the file, without overlap; what is refused is refused by one of our errors."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(with_header(header, data, length=length))
    try:
        (found,) = read_weights(tmp_path).files.values()
    except CheckpointError:
        return
    assert sum(tensor.end - tensor.begin for tensor in found.values()) <= len(data)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shapes=st.dictionaries(
        st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=9),
        st.lists(st.integers(0, 4), max_size=3),
        max_size=5,
    )
)
def test_what_the_formats_own_library_writes_is_read(tmp_path: Path, shapes: dict[str, list[int]]) -> None:
    save_file({name: torch.zeros(shape) for name, shape in shapes.items()}, tmp_path / "model.safetensors")
    found = read_header(tmp_path / "model.safetensors")
    assert {name: list(tensor.shape) for name, tensor in found.items()} == shapes
