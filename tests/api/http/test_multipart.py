"""The file of a form, whatever pieces the form arrives in."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.errors import BadRequestError, InvalidInputError, UnsupportedMediaError
from api.http.multipart import FilePart

TYPE = "multipart/form-data; boundary=frontier"


def form(content: bytes, disposition: str = 'form-data; name="file"; filename="dev.csv"') -> bytes:
    head = f"--frontier\r\nContent-Disposition: {disposition}\r\nContent-Type: text/csv\r\n\r\n"
    return head.encode() + content + b"\r\n--frontier--\r\n"


async def _read(body: bytes, piece: int, content_type: str) -> tuple[str, bytes]:
    async def pieces():
        for start in range(0, len(body), piece):
            yield body[start : start + piece]

    part, chunks = FilePart(content_type, pieces()), []
    while chunk := await part.next_chunk():
        chunks.append(chunk)
    return part.filename, b"".join(chunks)


def read(body: bytes, piece: int = 1000, content_type: str = TYPE) -> tuple[str, bytes]:
    return asyncio.run(_read(body, piece, content_type))


@given(
    content=st.one_of(
        st.binary(max_size=200), st.lists(st.sampled_from([b"\r\n--front", b"--", b"\r\n"])).map(b"".join)
    ),
    piece=st.integers(1, 50),
)
def test_the_file_comes_out_as_it_went_in(content, piece):
    assert read(form(content), piece) == ("dev.csv", content)


@pytest.mark.parametrize(
    ("given_name", "kept"),
    [("C:\\data\\dev.csv", "dev.csv"), ("../../etc/dev.csv", "dev.csv"), ("Überprüfung.csv", None)],
)
def test_only_the_last_part_of_a_path_is_kept(given_name, kept):
    assert read(form(b"x", f'form-data; name="file"; filename="{given_name}"'))[0] == (kept or given_name)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (form(b"x", 'form-data; name="data"; filename="a.csv"'), "holds a field 'data'"),
        (form(b"x", 'form-data; name="file"'), "not a file name"),
        (form(b"x", 'form-data; name="file"; filename=".."'), "not a file name"),
        (form(b"x").removesuffix(b"--\r\n") + form(b"y").removeprefix(b"--frontier"), "more than one part"),
        (b"--frontier--\r\n", "empty"),
    ],
)
def test_a_form_of_anything_but_one_file_is_refused(body, reason):
    with pytest.raises(InvalidInputError, match=reason):
        read(body)


@pytest.mark.parametrize("body", [b"", b"nonsense", form(b"x" * 100)[:-20], form(b"x")[:30]])
def test_a_broken_form_is_refused(body):
    with pytest.raises((BadRequestError, InvalidInputError)):
        read(body)


@pytest.mark.parametrize(
    "content_type", [None, "application/json", "multipart/form-data", "multipart/mixed; boundary=x"]
)
def test_another_type_is_refused(content_type):
    with pytest.raises(UnsupportedMediaError, match="curl -F"):
        read(form(b"x"), content_type=content_type)


def test_what_follows_the_form_is_not_waited_for():
    async def without_end():
        yield form(b"x")
        while True:
            yield b"more"

    async def first_two_chunks() -> list[bytes]:
        part = FilePart(TYPE, without_end())
        return [await part.next_chunk(), await part.next_chunk()]

    assert asyncio.run(first_two_chunks()) == [b"x", b""]
