"""The grammar of references: what each scheme is taken apart into, and what is refused with which reason."""

import string

import pytest
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from hypothesis import given
from hypothesis import strategies as st

from axformer.wire.references import DataRef
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
        ("ftp://a.example/m", "does not read; give a signed https:// address"),
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
        ("s3://bucket", "names no key; write s3://BUCKET/PREFIX"),
        ("s3://bucket/", "names no key"),
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


MEANT_MODELS = {
    "org/name": "write hf://org/name for a model",
    "/srv/m": "write file:///srv/m if",
    "~/m": "axformer upload PATH",
    "C:\\models\\m": "axformer upload PATH",
    "hf:org/name": "write hf://org/name",
    "hf://models/org/name": "write hf://org/name",
    "hf://org/name/": "write hf://org/name",
    "hf://org/name/tree/main": "write hf://org/name",
    "hf://org/name/model.safetensors": "write hf://org/name",
    "https://huggingface.co/org/name": "write hf://org/name",
    "https://HuggingFace.co/org/name/": "write hf://org/name",
    "https://hf.co/org/name/tree/v1": "write hf://org/name@v1",
    "https://huggingface.co/org/name/discussions": "write hf://org/name",
    "https://huggingface.co/org/name/blob/main/model.safetensors?download=true": "write hf://org/name",
    "https://huggingface.co/org/name/resolve/main": "write hf://org/name",
    "https://huggingface.co/spaces/org/name": "not a model; write hf://ORG/NAME",
    "https://huggingface.co/datasets/org/name": "not a model; write hf://ORG/NAME",
    "https://huggingface.co/docs/transformers": "not a model; write hf://ORG/NAME",
    "https://huggingface.co/name": "not a model; write hf://ORG/NAME",
    "https://me:hunter2@a.example/m/model.safetensors?sig=hunter2": "give its directory, https://a.example/m",
    "s3://bucket/m/config.json": "give its directory, s3://bucket/m",
    "file:///srv/m/pytorch_model.bin": "give its directory, file:///srv/m",
    "file:///srv/m?x=1": "leave it out, or write %3F",
    "s3a://bucket/m": "write s3://bucket/m",
    "gs://bucket/m": "give a signed https:// address",
    UPLOAD: f"write upload:{UPLOAD}",
    f"upload:{UPLOAD.upper()}": f"write upload:{UPLOAD}",
    f"upload://{UPLOAD}": f"write upload:{UPLOAD}",
}
MEANT_DATA = {
    "dev.jsonl": "axformer upload PATH",
    "hf://org/name/dev.jsonl": "write hf://datasets/org/name/dev.jsonl",
    "hf://datasets/org/name/tree/main/dev.jsonl": "write hf://datasets/org/name/dev.jsonl",
    "hf://datasets/org/name/data/*.parquet": "give one file",
    "https://huggingface.co/datasets/org/name": "write hf://datasets/org/name/FILE",
    "https://huggingface.co/datasets/org/name/viewer": "write hf://datasets/org/name/FILE",
    "https://huggingface.co/datasets/org/name/blob/v1/a/dev.csv": "write hf://datasets/org/name@v1/a/dev.csv",
    "https://huggingface.co/org/name/blob/main/dev.csv": "write https://huggingface.co/org/name/resolve/main/dev.csv",
    "https://github.com/org/name/blob/main/dev.csv": "write https://github.com/org/name/raw/main/dev.csv",
    "https://a.example/dev.csv#rows=5": "no known ending",
    "s3://bucket/dev.jsonl?versionId=3": "leave it out",
    "file:///srv/dev.jsonl#rows=5": "leave it out",
    "s3://bucket/data/": "no known ending",
    "file:///srv/dev.xlsx": "is a spreadsheet",
    "file:///srv/dev.jsonl.bz2": "packed with bzip2",
}


@pytest.mark.parametrize(
    ("uri", "right", "is_checkpoint"),
    [(uri, right, True) for uri, right in MEANT_MODELS.items()]
    + [(uri, right, False) for uri, right in MEANT_DATA.items()],
)
def test_what_people_write_is_refused_with_what_to_write(uri: str, right: str, is_checkpoint: bool) -> None:
    with pytest.raises(ReferenceFormError) as caught:
        parse_reference(uri, is_checkpoint=is_checkpoint)
    assert right in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "tidy", "filename"),
    [
        (" FILE:///srv/Dev%20(1).JSONL\n", "file:///srv/Dev%20(1).JSONL", "Dev (1).JSONL"),
        ("HF://datasets/org/name/raw/dev.csv", "hf://datasets/org/name/raw/dev.csv", "dev.csv"),
        ("HTTPS://a.example/x?id=5#dev.csv.gz", "https://a.example/x?id=5#dev.csv.gz", "dev.csv.gz"),
        ("https://a.example/x?id=5", "https://a.example/x?id=5", "x"),
        (
            "https://huggingface.co/datasets/org/name/resolve/main/dev.csv",
            "https://huggingface.co/datasets/org/name/resolve/main/dev.csv",
            "dev.csv",
        ),
    ],
)
def test_what_can_mean_only_one_thing_is_taken(uri: str, tidy: str, filename: str) -> None:
    parsed = parse_reference(uri, is_checkpoint=False)
    assert (parsed.uri, parsed.filename) == (tidy, filename)
    assert DataRef.model_validate(uri).uri == tidy


def test_an_archive_may_be_named_behind_its_address() -> None:
    parsed = parse_reference("https://a.example/download?id=5#model.tar.gz", is_checkpoint=True)
    assert (parsed.filename, parsed.shown) == ("model.tar.gz", "https://a.example/download")


@pytest.mark.parametrize("uri", ["hf://datasets/org/name", "hf://datasets/org/name@v1"])
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
