"""Every set by name, each made from the directory of the public sets, such as ``SOURCES/CoLA/train.jsonl``."""

from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.sets.parts import Parts
from benchmarks.sets.reading import questions, sentences
from benchmarks.sets.tags import chunks, kinds_of_words, parts_of_speech
from benchmarks.sets.texts import acceptability, answerability, entailment, news, sentiment, similarity, spam, topics

SETS: Mapping[str, Callable[[Path], Parts]] = {
    "ag-news": topics,
    "ag-news-texts": news,
    "sst2": sentiment,
    "cola": acceptability,
    "stsb": similarity,
    "sms": spam,
    "rte": entailment,
    "qnli": answerability,
    "conll2000": chunks,
    "ud-upos": parts_of_speech,
    "ud-kinds": kinds_of_words,
    "squad": questions,
    "squad-sentences": sentences,
}
