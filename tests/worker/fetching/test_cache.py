import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.fetching.cache import ContentCache, Entry


def test_content_is_kept_under_its_hash_and_given_out_read_only(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path / "cache")
    entry = cache.add("place", "v1", [b"ab", b"c"], tmp_path / "first")
    assert entry == Entry("v1", hashlib.sha256(b"abc").hexdigest(), 3)
    assert cache.find("place") == entry
    assert cache.link(entry, tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == b"abc"
    assert (tmp_path / "second").stat().st_mode & 0o222 == 0


def test_the_same_content_from_two_places_is_kept_once(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path / "cache")
    cache.add("one", "v1", [b"abc"], tmp_path / "first")
    cache.add("two", "v9", [b"abc"], tmp_path / "second")
    assert len(list((tmp_path / "cache" / "content").iterdir())) == 1


def test_content_without_a_version_is_not_found_again(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path / "cache")
    cache.add("place", None, [b"abc"], tmp_path / "first")
    assert cache.find("place") is None


def test_a_place_is_not_written_down(tmp_path: Path) -> None:
    ContentCache(tmp_path / "cache").add("https://a.example/m?sig=canary", "v1", [b"abc"], tmp_path / "first")
    written = b"".join(path.read_bytes() + path.name.encode() for path in tmp_path.rglob("*") if path.is_file())
    assert b"canary" not in written


def test_cleared_content_harms_no_user_and_is_noticed(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path / "cache")
    entry = cache.add("place", "v1", [b"abc"], tmp_path / "first")
    (tmp_path / "cache" / "content" / entry.sha256).unlink()
    assert (tmp_path / "first").read_bytes() == b"abc"
    assert cache.find("place") is None
    assert not cache.link(entry, tmp_path / "second")


def test_a_damaged_note_is_as_good_as_none(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path / "cache")
    cache.add("place", "v1", [b"abc"], tmp_path / "first")
    (note,) = (tmp_path / "cache" / "seen").iterdir()
    for text in ("", "{}", "[]", "{"):
        note.write_text(text)
        assert cache.find("place") is None


def test_a_source_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"ab"
        raise ConnectionError

    cache = ContentCache(tmp_path / "cache")
    with pytest.raises(ConnectionError):
        cache.add("place", "v1", chunks(), tmp_path / "first")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_two_who_bring_the_same_at_once_both_get_it(tmp_path: Path) -> None:
    cache, together = ContentCache(tmp_path / "cache"), threading.Barrier(4)

    def bring(number: int) -> None:
        def chunks() -> Iterator[bytes]:
            for _ in range(20):
                together.wait()
                yield b"x" * 1000

        cache.add("place", "v1", chunks(), tmp_path / f"file{number}")

    threads = [threading.Thread(target=bring, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {(tmp_path / f"file{number}").read_bytes() for number in range(4)} == {b"x" * 20_000}
    assert list((tmp_path / "cache" / "incoming").iterdir()) == []


@given(st.lists(st.integers(0, 6), max_size=6), st.integers(0, 20))
def test_what_was_used_longest_ago_is_cleared_first(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], most: int
) -> None:
    """No more than is necessary goes, and nothing stays that was unused for longer than something that has gone."""
    directory = tmp_path_factory.mktemp("cache")
    cache = ContentCache(directory / "cache")
    kept = [
        cache.add(str(age), "v1", [bytes([age]) * (size + 1)], directory / str(age)) for age, size in enumerate(sizes)
    ]
    for age, entry in enumerate(kept):
        os.utime(directory / "cache" / "content" / entry.sha256, (-age, -age))
    cleared = cache.trim(most, unfinished_seconds=60)
    found = [cache.find(str(age)) for age in range(len(kept))]
    stays = sum(entry is not None for entry in found)
    assert found == [*kept[:stays], *[None] * (len(kept) - stays)]
    assert cleared == sum(entry.size for entry in kept[stays:])
    assert sum(entry.size for entry in kept[:stays]) <= most
    assert stays == len(kept) or sum(entry.size for entry in kept[: stays + 1]) > most


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_what_goes_in_comes_out(tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes]) -> None:
    directory = tmp_path_factory.mktemp("cache")
    entry = ContentCache(directory / "cache").add("place", "v1", chunks, directory / "file")
    whole = b"".join(chunks)
    assert (directory / "file").read_bytes() == whole
    assert (entry.size, entry.sha256) == (len(whole), hashlib.sha256(whole).hexdigest())
