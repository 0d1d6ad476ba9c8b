"""What of a reference can be judged before it is fetched."""

import pytest

from api.errors import InvalidInputError
from api.services.posting import check_reference
from store.settings import Settings

UPLOAD = "upl_" + "0" * 32


def check(uri, *, is_checkpoint=True, roots=(), **more):
    settings = Settings(database_url="postgresql://host/test", file_roots=roots, **more)
    return check_reference(uri, "#/checkpoint/uri", is_checkpoint=is_checkpoint, settings=settings)


@pytest.mark.parametrize(
    ("uri", "is_checkpoint"),
    [
        ("https://example.org/models/bert/", True),
        ("https://example.org:8443/dev.csv?signature=abc", False),
        ("hf://acme/bert", True),
        ("hf://acme/bert@main", True),
        ("hf://datasets/acme/reviews/dev.csv", False),
        ("hf://datasets/acme/reviews@v1/data/dev.parquet", False),
        ("s3://bucket/prefix", True),
    ],
)
def test_places_elsewhere_are_taken(uri, is_checkpoint):
    assert check(uri, is_checkpoint=is_checkpoint) is None


def test_plain_http_is_taken_where_the_operator_allows_it():
    assert check("http://example.org/model", fetch={"plain_http": True}) is None


def test_an_upload_is_taken():
    assert check(f"upload:{UPLOAD}") is None


def test_a_file_must_lie_under_an_open_root(tmp_path):
    inside, outside = tmp_path / "open", tmp_path / "closed"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    assert check(f"file://{inside}/model", roots=(inside,)) is None
    for path in (outside, f"{inside}/../closed", f"{inside}/%2e%2e/closed", f"{inside}/link/model", f"{inside}2/model"):
        with pytest.raises(InvalidInputError, match="outside of the directories"):
            check(f"file://{path}", roots=(inside,))
    (inside / "circle").symlink_to(inside / "circle")
    with pytest.raises(InvalidInputError, match="lead in a circle"):
        check(f"file://{inside}/circle/model", roots=(inside,))
    with pytest.raises(InvalidInputError, match="are: none"):
        check(f"file://{inside}/model")


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("model", "no scheme"),
        ("http://example.org/model", "not read over plain http"),
        ("https://user:secret@example.org/", "user name or password"),
        ("s3://ARN:x/key", "not a URL|no bucket"),
    ],
)
def test_what_cannot_work_is_refused_with_its_reason_and_place(uri, reason):
    with pytest.raises(InvalidInputError, match=reason) as raised:
        check(uri)
    assert "secret" not in raised.value.detail
    assert (raised.value.code, raised.value.errors[0].pointer) == ("invalid_reference", "#/checkpoint/uri")


def test_data_of_the_hub_is_a_file():
    with pytest.raises(InvalidInputError, match="datasets/ORG/NAME"):
        check("hf://acme/bert", is_checkpoint=False)
