import io
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from axformer.intake.names import is_checkpoint_file
from store.errors import ArchiveError, ArchiveTooLargeError
from store.storage.archives import checkpoint_members
from tests.worker.fetching.conftest import CHECKPOINT, STRANGERS, contents
from worker.fetching.archive import unpack
from worker.fetching.errors import ArchiveInvalid, FetchError, ReferenceTooLarge

LIMITS = {"max_bytes": 1 << 20, "max_members": 50}
ROOM_FOR_HEADERS = 10 * tarfile.RECORDSIZE


def make_zip(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(name, body)


def make_tar(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as archive:
        for name, body in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))


KINDS = [("a.zip", make_zip), ("a.tar", make_tar), ("a.tar.gz", make_tar), ("a.tgz", make_tar)]
Maker = Callable[[Path, dict[str, bytes]], None]


@pytest.fixture
def into(tmp_path: Path) -> Path:
    (tmp_path / "into").mkdir()
    return tmp_path / "into"


@pytest.mark.parametrize(("name", "make"), KINDS)
def test_allowed_files_come_out_flat(tmp_path: Path, into: Path, name: str, make: Maker) -> None:
    make(tmp_path / name, {f"./mine/{file}": body for file, body in (CHECKPOINT | STRANGERS).items()})
    written = unpack(tmp_path / name, name, into, **LIMITS)
    assert sorted(written) == sorted(CHECKPOINT)
    assert contents(into) == CHECKPOINT


@pytest.mark.parametrize(("name", "make"), KINDS)
@pytest.mark.parametrize("path", ["../config.json", "/config.json", "a/../../config.json", "a\\..\\config.json"])
def test_paths_that_climb_condemn_the_archive(tmp_path: Path, into: Path, name: str, make: Maker, path: str) -> None:
    make(tmp_path / name, {path: b"{}"})
    with pytest.raises(ArchiveInvalid, match="leaves it"):
        unpack(tmp_path / name, name, into, **LIMITS)
    assert contents(into) == {}


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_condemn_a_tar(tmp_path: Path, into: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        info = tarfile.TarInfo("config.json")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(ArchiveInvalid, match="not a regular file"):
        unpack(tmp_path / "a.tar.gz", "a.tar.gz", into, **LIMITS)


def test_links_condemn_a_zip(tmp_path: Path, into: Path) -> None:
    info = zipfile.ZipInfo("config.json")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(ArchiveInvalid, match="not a regular file"):
        unpack(tmp_path / "a.zip", "a.zip", into, **LIMITS)


@pytest.mark.parametrize(("name", "make"), KINDS)
def test_the_same_name_twice_is_refused(tmp_path: Path, into: Path, name: str, make: Maker) -> None:
    make(tmp_path / name, {"a/config.json": b"{}", "b/config.json": b"{}"})
    with pytest.raises(ArchiveInvalid, match="more than one"):
        unpack(tmp_path / name, name, into, **LIMITS)


@pytest.mark.parametrize(("name", "make"), KINDS)
def test_many_members_are_refused(tmp_path: Path, into: Path, name: str, make: Maker) -> None:
    make(tmp_path / name, {f"{n}.txt": b"" for n in range(51)})
    with pytest.raises(ReferenceTooLarge, match="50 members"):
        unpack(tmp_path / name, name, into, **LIMITS)


@pytest.mark.parametrize(("name", "make"), KINDS)
def test_a_bomb_is_refused(tmp_path: Path, into: Path, name: str, make: Maker) -> None:
    make(tmp_path / name, {"model.safetensors": bytes(LIMITS["max_bytes"] + ROOM_FOR_HEADERS)})
    with pytest.raises(ReferenceTooLarge, match="unpacks"):
        unpack(tmp_path / name, name, into, **LIMITS)


def test_a_bomb_among_the_files_that_are_not_taken_is_refused(tmp_path: Path, into: Path) -> None:
    make_tar(tmp_path / "a.tgz", {"other.bin": bytes(LIMITS["max_bytes"] + ROOM_FOR_HEADERS), "config.json": b"{}"})
    with pytest.raises(ReferenceTooLarge):
        unpack(tmp_path / "a.tgz", "a.tgz", into, **LIMITS)


@pytest.mark.parametrize(("name", "make"), [KINDS[0], KINDS[2]])
def test_more_than_a_hundred_times_its_own_size_is_not_unpacked(
    tmp_path: Path, into: Path, name: str, make: Maker
) -> None:
    make(tmp_path / name, {"model.safetensors": bytes(20 << 20)})
    with pytest.raises(ReferenceTooLarge, match="unpacks"):
        unpack(tmp_path / name, name, into, max_bytes=1 << 30, max_members=50)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        (1000, None),
        (5_000, "more than 1000 members"),
        (30_000, r"has a header of \d+ bytes; pack the checkpoint alone"),
    ],
)
def test_a_zip_of_many_members_is_refused_before_they_are_all_read(members: int, why: str | None) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for member in range(members):
            file.writestr(f"{member:050}", b"")
    size = len(packed.getvalue())
    read = checkpoint_members(packed, size, "a.zip", max_bytes=1 << 40, max_members=1000)
    if why is None:
        assert list(read) == []
    else:
        with pytest.raises((ArchiveError, ArchiveTooLargeError), match=why):
            list(read)


def test_a_link_that_waits_where_a_file_goes_is_not_followed(tmp_path: Path, into: Path) -> None:
    make_zip(tmp_path / "a.zip", {"config.json": b"{}"})
    (into / "config.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        unpack(tmp_path / "a.zip", "a.zip", into, **LIMITS)
    assert not (tmp_path / "elsewhere").exists()


def test_a_list_of_members_that_is_too_long_to_read_is_refused(tmp_path: Path, into: Path) -> None:
    make_zip(tmp_path / "a.zip", {"config.json": b"{}"})
    body = (tmp_path / "a.zip").read_bytes()
    end, length = body.rindex(b"PK\x05\x06"), 65 << 20
    record = bytearray(body[end:])
    record[12:20] = struct.pack("<LL", length, 0)  # the list begins at the file's beginning and is this long
    with (tmp_path / "a.zip").open("wb") as file:
        file.truncate(length)
        file.seek(length)
        file.write(record)
    with pytest.raises(ArchiveInvalid, match="header of"):
        unpack(tmp_path / "a.zip", "a.zip", into, **LIMITS)


def test_a_header_that_asks_for_all_memory_is_refused(tmp_path: Path, into: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 33
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(tarfile.RECORDSIZE))
    with pytest.raises(FetchError):
        unpack(tmp_path / "a.tar", "a.tar", into, **LIMITS)


@pytest.mark.parametrize(("name", "make"), KINDS)
@pytest.mark.parametrize("keep", [0.0, 0.3, 0.8])
def test_a_truncated_archive_is_damaged(tmp_path: Path, into: Path, name: str, make: Maker, keep: float) -> None:
    make(tmp_path / name, {"config.json": b"{}", "model.safetensors": bytes(range(256)) * 200})
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(ArchiveInvalid, match="damaged"):
        unpack(tmp_path / name, name, into, **LIMITS)


def test_a_zip_packed_by_a_rare_method_is_refused(tmp_path: Path, into: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("config.json", b"{}")
    with pytest.raises(ArchiveInvalid, match="deflate"):
        unpack(tmp_path / "a.zip", "a.zip", into, **LIMITS)


def test_an_encrypted_zip_is_refused(tmp_path: Path, into: Path) -> None:
    make_zip(tmp_path / "a.zip", {"config.json": b"{}"})
    body = bytearray((tmp_path / "a.zip").read_bytes())
    body[body.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(bytes(body))
    with pytest.raises(ArchiveInvalid, match="password"):
        unpack(tmp_path / "a.zip", "a.zip", into, **LIMITS)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(KINDS),
    position=st.floats(min_value=0, max_value=1, exclude_max=True),
    value=st.integers(min_value=0, max_value=255),
)
@example(kind=KINDS[0], position=0.9921875, value=1)  # the offset of the first member becomes negative
def test_a_changed_byte_never_escapes(
    tmp_path_factory: pytest.TempPathFactory, kind: tuple[str, Maker], position: float, value: int
) -> None:
    """Whatever byte is changed: files of allowed names come out in one place, or one of our errors does."""
    directory = tmp_path_factory.mktemp("changed")
    name, make = kind
    make(directory / name, CHECKPOINT | {"../x": b""} if value % 7 == 0 else CHECKPOINT)
    body = bytearray((directory / name).read_bytes())
    body[int(len(body) * position)] = value
    (directory / name).write_bytes(bytes(body))
    (directory / "into").mkdir()
    try:
        written = unpack(directory / name, name, directory / "into", **LIMITS)
    except FetchError:
        written = []
    assert all(is_checkpoint_file(file) for file in written)
    assert {path.name for path in directory.iterdir()} == {name, "into"}
    assert all(is_checkpoint_file(name) for name in contents(directory / "into"))
