"""The grammar of references: what each scheme is taken apart into, and what is refused with which reason."""

import string

import pytest
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from hypothesis import given
from hypothesis import strategies as st

from store.errors import ReferenceFormError
from store.references import ParsedReference, Scheme, parse_reference, shown

UPLOAD = "upl_" + "0" * 32


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
        (f"upload:{UPLOAD}", (Scheme.UPLOAD, UPLOAD, "", None)),
    ],
)
def test_each_scheme_is_taken_apart(uri: str, expected: tuple[Scheme, str, str, str | None]) -> None:
    is_checkpoint = not uri.startswith("hf://datasets/")
    assert parse_reference(uri, is_checkpoint=is_checkpoint) == ParsedReference(uri, *expected)


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("", "no scheme"),
        ("model", "no scheme"),
        ("/srv/model", "no scheme"),
        ("ftp://a.example/m", "no scheme"),
        ("https:///m", "no host"),
        ("https://a.example:port/m", "not a URL"),
        ("https://[::1/m", "not a URL"),
        ("https://a.example/%00", "zero byte"),
        ("https://me:hunter2@a.example/m", "user name or password"),
        ("file://server/share", "write file:///"),
        ("file:relative", "write file:///"),
        ("file:///model%00", "zero byte"),
        ("hf://org", "form hf://ORG/NAME"),
        ("hf://org/name/extra", "form hf://ORG/NAME"),
        ("hf://datasets/name", "form hf://ORG/NAME"),
        ("hf://datasets/org/name/dev.csv", "form hf://ORG/NAME"),
        ("hf://org/na--me", "no repository"),
        ("hf://org/name.git", "no repository"),
        ("hf://org/name@../../x", "no repository"),
        ("s3:///key", "no bucket"),
        ("s3://arn:aws:s3:eu:1:accesspoint/key", "not a URL|no bucket"),
        ("s3://Bucket/key", "3 to 63 small letters"),
        ("upload:../../etc/passwd", "not an upload"),
        ("upload:", "not an upload"),
    ],
)
def test_other_forms_are_refused_with_their_reason(uri: str, reason: str) -> None:
    with pytest.raises(ReferenceFormError, match=reason) as caught:
        parse_reference(uri, is_checkpoint=True)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("uri", ["hf://org/name", "hf://datasets/org/name", "hf://datasets/org/name@v1"])
def test_data_of_the_hub_is_a_file(uri: str) -> None:
    with pytest.raises(ReferenceFormError, match="form hf://datasets/ORG/NAME"):
        parse_reference(uri, is_checkpoint=False)


@given(st.from_regex(r"[\w.-]{1,20}/[\w.-]{1,100}", fullmatch=True))
def test_a_repository_is_taken_where_the_hubs_own_library_takes_it(name: str) -> None:
    try:
        validate_repo_id(name)
    except HFValidationError:
        with pytest.raises(ReferenceFormError):
            parse_reference(f"hf://{name}", is_checkpoint=True)
    else:
        if not name.startswith("datasets/"):
            assert parse_reference(f"hf://{name}", is_checkpoint=True).place == name


def test_the_query_is_never_shown() -> None:
    reference = parse_reference("https://a.example/dev.csv?X-Signature=canary", is_checkpoint=False)
    assert "canary" not in reference.shown
    assert reference.filename == "dev.csv"


@pytest.mark.parametrize(
    ("uri", "visible"),
    [
        ("https://a/b?X-Amz-Signature=abc", "https://a/b?…"),
        ("https://user:secret@a/b", "https://a/b"),
        ("upload:x", "upload:x"),
    ],
)
def test_what_may_be_secret_is_not_shown(uri: str, visible: str) -> None:
    assert shown(uri) == visible


@given(st.text(alphabet=string.printable, max_size=60), st.booleans())
def test_any_text_is_taken_apart_or_refused(uri: str, is_checkpoint: bool) -> None:
    try:
        reference = parse_reference(uri, is_checkpoint=is_checkpoint)
    except ReferenceFormError:
        return
    assert reference.uri == uri
    assert "?" not in reference.shown
