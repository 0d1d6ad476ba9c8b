import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.fetching.errors import ReferenceInvalid
from worker.fetching.reference import Reference, Scheme, parse_reference


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("https://a.example/m/x%20y.csv?sig=1#top", (Scheme.HTTPS, "a.example", "/m/x y.csv", None)),
        ("http://a.example:8080/m/", (Scheme.HTTP, "a.example", "/m/", None)),
        ("file:///srv/model", (Scheme.FILE, "", "/srv/model", None)),
        ("file://localhost/srv/model", (Scheme.FILE, "", "/srv/model", None)),
        ("hf://org/name", (Scheme.HUB, "org/name", "", None)),
        ("hf://org/name@v1.0", (Scheme.HUB, "org/name", "", "v1.0")),
        ("hf://org/name@refs%2Fpr%2F1", (Scheme.HUB, "org/name", "", "refs/pr/1")),
        ("hf://datasets/org/name/data/dev.csv", (Scheme.HUB, "org/name", "data/dev.csv", None)),
        ("hf://datasets/org/name@abc/dev.csv", (Scheme.HUB, "org/name", "dev.csv", "abc")),
        ("s3://bucket/some/prefix/", (Scheme.S3, "bucket", "/some/prefix/", None)),
        ("upload:upl_01", (Scheme.UPLOAD, "upl_01", "", None)),
    ],
)
def test_each_scheme_is_taken_apart(uri: str, expected: tuple[Scheme, str, str, str | None]) -> None:
    assert parse_reference(uri) == Reference(uri, *expected)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "model",
        "/srv/model",
        "ftp://a.example/m",
        "https:///m",
        "https://a.example:port/m",
        "https://[::1/m",
        "file://server/share",
        "file:relative",
        "hf://org",
        "hf://org/name/extra",
        "hf://datasets/org/name",
        "s3:///key",
        "upload:../../etc/passwd",
        "upload:",
        "https://a.example/%00",
    ],
)
def test_other_forms_are_refused(uri: str) -> None:
    with pytest.raises(ReferenceInvalid) as caught:
        parse_reference(uri)
    assert caught.value.code == "invalid_reference"


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ReferenceInvalid) as caught:
        parse_reference("https://me:hunter2@a.example/m")
    assert "hunter2" not in str(caught.value)


def test_the_query_is_never_shown() -> None:
    reference = parse_reference("https://a.example/dev.csv?X-Signature=canary")
    assert "canary" not in reference.shown
    assert reference.filename == "dev.csv"


@given(st.text(alphabet=string.printable, max_size=60))
def test_any_text_is_taken_apart_or_refused(uri: str) -> None:
    try:
        reference = parse_reference(uri)
    except ReferenceInvalid:
        return
    assert reference.uri == uri
    assert "?" not in reference.shown
