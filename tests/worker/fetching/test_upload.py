import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from store.storage.storage import LocalStorage, upload_folder
from store.tables.files import Upload
from tests.loopback import Loopback, Site
from tests.worker.fetching.conftest import CHECKPOINT, LOOPBACK, STRANGERS, contents
from worker.fetching.errors import FetchError, ReferenceInvalid, ReferenceMissing, ReferenceTooLarge
from worker.fetching.fetcher import Fetcher

MakeFetcher = Callable[..., Fetcher]
MakeUpload = Callable[[str, bytes], Upload]


def packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return buffer.getvalue()


def test_an_uploaded_archive_is_a_checkpoint(upload: MakeUpload, make_fetcher: MakeFetcher, tmp_path: Path) -> None:
    sent = upload("model.zip", packed({f"mine/{name}": body for name, body in (CHECKPOINT | STRANGERS).items()}))
    make_fetcher(uploads=(sent,)).checkpoint("upload:upl_1", tmp_path / "model")
    assert contents(tmp_path / "model") == CHECKPOINT
    assert not (tmp_path / "model.archive").exists()


def test_an_uploaded_file_is_data(upload: MakeUpload, make_fetcher: MakeFetcher, tmp_path: Path) -> None:
    sent = upload("dev.csv.gz", b"rows")
    path = make_fetcher(uploads=(sent,)).data("upload:upl_1", tmp_path / "validation").path
    assert (path.name, path.read_bytes()) == ("validation.csv.gz", b"rows")


@pytest.mark.parametrize(
    ("filename", "is_checkpoint", "words"),
    [("model.zip", True, "'model.zip' holds no config.json"), ("dev.xlsx", False, "'dev.xlsx' is a spreadsheet")],
)
def test_an_upload_is_called_by_the_name_of_its_file(
    upload: MakeUpload, make_fetcher: MakeFetcher, tmp_path: Path, filename: str, is_checkpoint: bool, words: str
) -> None:
    fetcher = make_fetcher(uploads=(upload(filename, packed(STRANGERS)),))
    with pytest.raises(FetchError, match=words):
        (fetcher.checkpoint if is_checkpoint else fetcher.data)("upload:upl_1", tmp_path / "fetched")


def test_what_was_fetched_has_the_name_that_its_owner_gave(
    upload: MakeUpload, make_fetcher: MakeFetcher, site: Site, server: Loopback, tmp_path: Path
) -> None:
    site.files["/dev.csv"] = b"rows"
    fetcher = make_fetcher(uploads=(upload("semi.csv", b"rows"),))
    assert fetcher.data("upload:upl_1", tmp_path / "sent").name == "semi.csv"
    assert fetcher.data(f"{server.url}/dev.csv?sig=canary", tmp_path / "named").name == f"{server.url}/dev.csv"


def test_an_upload_of_another_team_is_not_there(make_fetcher: MakeFetcher, tmp_path: Path) -> None:
    with pytest.raises(ReferenceMissing, match="upload:upl_1"):
        make_fetcher().data("upload:upl_1", tmp_path / "validation")


def test_an_upload_whose_content_was_deleted_is_not_there(
    upload: MakeUpload, storage: LocalStorage, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    sent = upload("dev.csv", b"rows")
    storage.delete(upload_folder(sent.id))
    with pytest.raises(ReferenceMissing, match="deleted"):
        make_fetcher(uploads=(sent,)).data("upload:upl_1", tmp_path / "validation")


def test_a_checkpoint_is_uploaded_as_an_archive(upload: MakeUpload, make_fetcher: MakeFetcher, tmp_path: Path) -> None:
    sent = upload("model.safetensors", b"weights")
    with pytest.raises(ReferenceInvalid, match="archive"):
        make_fetcher(uploads=(sent,)).checkpoint("upload:upl_1", tmp_path / "model")


def test_an_archive_without_a_checkpoint_is_refused(
    upload: MakeUpload, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    sent = upload("model.zip", packed(STRANGERS))
    with pytest.raises(ReferenceMissing, match=r"config\.json"):
        make_fetcher(uploads=(sent,)).checkpoint("upload:upl_1", tmp_path / "model")


def test_an_archive_that_unpacks_to_more_than_allowed_is_refused(
    upload: MakeUpload, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    sent = upload("model.zip", packed({"config.json": b"{}", "model.safetensors": bytes(100_000)}))
    assert sent.bytes < 50_000
    fetcher = make_fetcher(replace(LOOPBACK, max_bytes=50_000), uploads=(sent,))
    with pytest.raises(ReferenceTooLarge, match="unpacks"):
        fetcher.checkpoint("upload:upl_1", tmp_path / "model")
