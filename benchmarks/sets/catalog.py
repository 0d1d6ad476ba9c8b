"""Every set by name, each made from the directory of the public sets, such as ``SOURCES/CoLA/train.jsonl``."""

from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.sets.parts import Parts
from benchmarks.sets.reading import questions
from benchmarks.sets.tags import chunks, parts_of_speech
from benchmarks.sets.texts import acceptability, entailment, sentiment, similarity, spam, topics

SETS: Mapping[str, Callable[[Path], Parts]] = {
    "ag-news": topics,
    "sst2": sentiment,
    "cola": acceptability,
    "stsb": similarity,
    "sms": spam,
    "rte": entailment,
    "conll2000": chunks,
    "ud-upos": parts_of_speech,
    "squad": questions,
}
