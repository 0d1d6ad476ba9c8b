"""Every set by name, and the program that prepares them.

    python -m benchmarks.sets.catalog --source SOURCES --output DIR [--only NAME ...]

writes ``DIR/NAME/train.jsonl``, ``validation.jsonl`` and ``test.jsonl``. ``SOURCES`` holds the public sets that
``benchmarks/sets`` reads, such as ``SOURCES/CoLA/train.jsonl``; large ones are gzipped.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

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


def main(
    source: Annotated[Path, typer.Option(help="directory of the public sets")],
    output: Annotated[Path, typer.Option(help="directory for the prepared sets")],
    only: Annotated[list[str] | None, typer.Option(help="a set to prepare; may be repeated")] = None,
) -> None:
    """Prepare the sets."""
    for name in only or SETS:
        if name not in SETS:
            raise typer.BadParameter(f"set '{name}' is unknown; there are {', '.join(SETS)}")
        parts = SETS[name](source)
        parts.write(output / name)
        print(f"{name}: {parts.sizes}")


if __name__ == "__main__":
    typer.run(main)
