"""Sets of labelled texts and pairs of texts."""

from pathlib import Path

from benchmarks.sets.parts import Parts, alike, held_out, read_labelled, sample
from benchmarks.split import label_of

# A pass evaluates the validation set hundreds of times: as large as two slow cores bear. The small models bear more.
_LARGE, _MIDDLE = 1000, 500
_TOPIC_TEST = 2000


def topics(source: Path) -> Parts:
    """AG-News: the topic of a news item, four classes."""
    train, validation = held_out(read_labelled(source / "AG-News/train.jsonl"), _LARGE)
    return Parts(train, validation, sample(read_labelled(source / "AG-News/test.jsonl"), _TOPIC_TEST, label_of))


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


def entailment(source: Path) -> Parts:
    """RTE, with the validation set that the paper's authors cut; GLUE's dev, 277 rows, is held out."""
    return Parts(*(read_labelled(source / f"RTE/{part}.jsonl") for part in ("train", "val", "dev")))
