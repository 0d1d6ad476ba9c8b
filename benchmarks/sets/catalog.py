"""Every set by name, each made from the directory of the public sets, such as ``SOURCES/CoLA/train.jsonl``.

SQuAD's training set is not at hand, so its dev set is cut by article, and TyDiQA's English questions help to train.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.rows import LabelsRow, PairRow, PassagesRow, QuestionRow, Row, TagsRow, TextRow
from benchmarks.sets.parts import SEED, Parts, alike, by_group, held_out, label_of, read_labelled, read_objects, sample

# A pass evaluates the validation set hundreds of times: as large as two slow cores bear. The small models bear more.
_LARGE, _MIDDLE = 1000, 500
_ASKED, _ASKED_VALIDATION = 3000, 80
"""Questions to train on, and to validate with."""
_SHARES = (1 / 6, 1 / 6)
"""Of 48 articles 8 to validate with and 8 held out."""
_CUTS, _MOST_POOLED = (0.45, 0.75), (4_000, 3_000, 3_000)
"""Where a pooled set is cut, and the most rows of each part."""
_PHRASES = ("ADJP", "ADVP", "PP", "PRT", "SBAR")
_TEXTS = 1800
"""Of a kind, for an embedder."""
_LISTS, _LISTED, _SHORT = (1200, 60, 150), (2, 8, 8), 100
"""Lists to learn from, to decide on and held out, the passages of each, and the most words of a passage."""
_LONGEST = 120
"""Words of a context. More than half of SQuAD's dev is no longer, and training takes half as long."""


def topics(source: Path) -> Parts:
    """AG-News: the topic of a news item, four classes."""
    train, validation = held_out(read_labelled(source / "AG-News/train.jsonl"), _LARGE)
    return Parts(train, validation, sample(read_labelled(source / "AG-News/test.jsonl"), 2 * _LARGE, label_of))


def sentiment(source: Path) -> Parts:
    """SST-2, whole sentences."""
    train, validation = held_out(read_labelled(source / "SST-2-sentences/train.jsonl"), _MIDDLE)
    return Parts(train, validation, sample(read_labelled(source / "SST-2-sentences/test.jsonl"), _LARGE, label_of))


def spam(source: Path) -> Parts:
    """SMS-spam: whether a message is spam; repeats of one message are in one part."""
    train, validation, test = (read_labelled(source / f"SMS-spam/{part}.jsonl") for part in ("train", "dev", "test"))
    return Parts(train, sample(validation, _LARGE, label_of), sample(test, 2 * _LARGE, label_of))


def acceptability(source: Path) -> Parts:
    """CoLA, with the validation set that the paper's authors cut; GLUE's dev is held out."""
    train, validation, test = (read_labelled(source / f"CoLA/{part}.jsonl") for part in ("train", "val", "dev"))
    return Parts(train, sample(validation, _LARGE, label_of), sample(test, _LARGE, label_of))


def similarity(source: Path) -> Parts:
    """STS-B: how alike two sentences are, 0 to 5."""
    train, validation = held_out(read_labelled(source / "STS-B/train.jsonl"), _MIDDLE, alike)
    return Parts(train, validation, sample(read_labelled(source / "STS-B/test.jsonl"), _LARGE))


def entailment(source: Path, directory: str = "RTE") -> Parts:
    """RTE or WNLI, with the validation set that the paper's authors cut; GLUE's dev, 277 or 71 rows, is held out."""
    return Parts(*(read_labelled(source / directory / f"{part}.jsonl") for part in ("train", "val", "dev")))


def chunks(source: Path) -> Parts:
    """CoNLL-2000: the phrases of a sentence."""
    return _tagged(source / "CoNLL-2000-chunk")


def phrases(source: Path) -> Parts:
    """CoNLL-2000 as texts: the kinds of phrases that a sentence has, of five that are neither in all nor in hardly any."""
    parts = chunks(source)
    return Parts(*(list(map(_phrases_in, part)) for part in (parts.train, parts.validation, parts.test)))


def _phrases_in(row: TagsRow) -> LabelsRow:
    found = {tag.partition("-")[2] for tag in row.tags}
    return LabelsRow(" ".join(row.tokens), [kind for kind in _PHRASES if kind in found])


def parts_of_speech(source: Path) -> Parts:
    """UD English EWT: the part of speech of each word."""
    return _tagged(source / "UD-EWT-upos")


def _tagged(directory: Path) -> Parts:
    train, validation = held_out(_read(directory / "train.jsonl"), _MIDDLE, alike)
    return Parts(train, validation, sample(_read(directory / "test.jsonl"), _LARGE))


def _read(path: Path) -> list[TagsRow]:
    return [TagsRow(found["tokens"], found["tags"]) for found in read_objects(path)]


def questions(source: Path) -> Parts:
    """SQuAD 1.1 dev by article, with TyDiQA in the part to train on."""
    validation, test, train = _articles(source)
    more = read_objects(source / "TyDiQA-GoldP-en/train.jsonl")
    return Parts(
        sample(list(_short([*train, *more])), _ASKED),
        sample(list(_short(validation)), _ASKED_VALIDATION),
        sample(list(_short(test)), _MIDDLE),
    )


def _articles(source: Path) -> tuple[list[dict[str, Any]], ...]:
    return by_group(read_objects(source / "SQuAD-v1.1/dev.jsonl"), lambda found: found["title"], _SHARES)


def _short(rows: Iterable[Mapping[str, Any]]) -> Iterator[QuestionRow]:
    for found in rows:
        if len(found["context"].split()) <= _LONGEST:
            yield QuestionRow(found["question"], found["context"], found["answers"])


def search(source: Path) -> Parts:
    """Texts for an embedder: paragraphs and questions of half of SQuAD's articles, sentences of STS-B and news, most to fit to
    and some to decide on; a question for each paragraph of the other articles is held out."""
    here, there = by_group(read_objects(source / "SQuAD-v1.1/dev.jsonl"), lambda found: found["title"], (0.5,))
    pairs = read_labelled(source / "STS-B/train.jsonl")
    texts = [
        *_drawn(found["context"] for found in here),
        *_drawn(found["question"].strip() for found in here),
        *_drawn(text for row in pairs for text in (row.text, row.text_pair or "")),
        *_drawn(row.text for row in read_labelled(source / "AG-News/train.jsonl")),
    ]
    fit, deciding = held_out([TextRow(text) for text in texts], _MIDDLE, alike)
    once = {found["context"]: PairRow(found["question"].strip(), found["context"]) for found in there}
    return Parts(fit, deciding, sample(list(once.values()), _LARGE))


def passages(source: Path) -> Parts:
    """Lists to rank: a question with its paragraph and others of the same article; articles are in one part each."""
    objects = read_objects(source / "SQuAD-v1.1/dev.jsonl")
    rows = [found for found in objects if len(found["context"].split()) <= _SHORT]
    sizes = zip(by_group(rows, lambda found: found["title"], (0.5, 0.1)), _LISTS, _LISTED, strict=True)
    return Parts(*(list(_lists(sample(part, most), part, length)) for part, most, length in sizes))


def _lists(asked: Iterable[Mapping[str, Any]], part: Iterable[Mapping[str, Any]], length: int) -> Iterator[PassagesRow]:
    chance = random.Random(SEED)  # noqa: S311 - an experiment's seed, not a secret
    articles: dict[str, dict[str, None]] = defaultdict(dict)
    for found in part:
        articles[found["title"]][found["context"]] = None
    for found in asked:
        others = [context for context in articles[found["title"]] if context != found["context"]]
        if len(others) >= length - 1:
            place, listed = chance.randrange(length), chance.sample(others, length - 1)
            yield PassagesRow(found["question"].strip(), [*listed[:place], found["context"], *listed[place:]], place)


def _drawn(texts: Iterable[str]) -> list[str]:
    """Texts of one kind, each once."""
    return sample(sorted(set(texts)), _TEXTS)


def pooled(source: Path, directory: str) -> Parts:
    """All rows of a set, each input once, cut anew: some to learn from, some as they come to a model at work, and others held
    out. The second part is called ``validation``."""
    files = sorted({file.name.removesuffix(".gz") for file in (source / directory).glob("*.jsonl*")})
    objects = [found for name in files for found in read_objects(source / directory / name)]
    rows = [TagsRow(**found) if "tokens" in found else Row(**found) for found in objects]
    once = list({_input(row): row for row in rows}.values())
    random.Random(SEED).shuffle(once)  # noqa: S311 - an experiment's seed, not a secret
    ends = [round(share * len(once)) for share in _CUTS]
    parts = (once[start:end] for start, end in zip([0, *ends], [*ends, len(once)], strict=True))
    return Parts(*(part[:most] for part, most in zip(parts, _MOST_POOLED, strict=True)))


def _input(row: Row | TagsRow) -> tuple[Any, ...]:
    return tuple(row.tokens) if isinstance(row, TagsRow) else (row.text, row.text_pair)


POOLED: Mapping[str, str] = {
    "sst2": "SST-2-sentences",
    "ag-news": "AG-News",
    "sms": "SMS-spam",
    "cola": "CoLA",
    "qnli": "QNLI",
    "rte": "RTE",
    "ud-upos": "UD-EWT-upos",
    "stsb": "STS-B",
}
"""The directories of the sets that are pooled, by the names of the sets."""
SETS: Mapping[str, Callable[[Path], Parts]] = {
    "ag-news": topics,
    "sst2": sentiment,
    "cola": acceptability,
    "stsb": similarity,
    "sms": spam,
    "rte": entailment,
    "wnli": partial(entailment, directory="WNLI"),
    "conll2000": chunks,
    "phrases": phrases,
    "ud-upos": parts_of_speech,
    "squad": questions,
    "search": search,
    "passages": passages,
    **{f"{name}-pooled": partial(pooled, directory=directory) for name, directory in POOLED.items()},
}
