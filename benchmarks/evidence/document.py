"""``docs/evidence.md`` from the files of the cells alone.

python -m benchmarks.evidence.document > docs/evidence.md
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.evidence import tables
from benchmarks.evidence.grid import cells, compression_cells, traded_cells, varied_cells
from benchmarks.evidence.protocol import protocol
from benchmarks.evidence.reading import RESULTS, Content, read_cells
from benchmarks.evidence.standing import MARKS, marks_of


@dataclass(frozen=True)
class ByQuestion:
    """Cells by what they are asked for."""

    compared: list[Content]
    compression: list[tuple[int, Content]]
    """With the epochs of the model's training."""
    traded: list[Content]
    varied: list[Content]


def by_question(found: Sequence[Content]) -> ByQuestion:
    """Sort cells by what they are asked for."""
    epochs = {cell.name: cell.checkpoint.epochs for cell in compression_cells()}
    traded, varied = ({cell.name for cell in asked} for asked in (traded_cells(), varied_cells()))
    return ByQuestion(
        compared=[one for one in found if one["cell"] not in epochs.keys() | traded | varied],
        compression=[(epochs[one["cell"]], one) for one in found if one["cell"] in epochs],
        traded=[one for one in found if one["cell"] in traded],
        varied=[one for one in found if one["cell"] in varied],
    )


def document_of(found: Sequence[Content], planned: int) -> str:
    """The document.

    Args:
        found: cells, at least one.
        planned: how many there are when all are measured.
    """
    asked = by_question(found)
    compared = asked.compared
    sections = (
        _section("By set", _BY_SET, tables.by_set(compared)),
        _section("Validation loss and held-out loss", _OPTIMISM, tables.optimism(compared)),
        _section("How much the seed matters", _SEEDS, tables.seeds(compared)),
        _section("Over all sets", _SEEDS_OVER_SETS, tables.seeds_over_sets(compared)),
        _section("What is not as in the paper", _PROTOCOL, protocol(compared)),
        _section("Other heuristics", _HEURISTICS, tables.heuristics(asked.varied, compared)),
        _section("What goes", _ELEMENTS, tables.elements(compared)),
        _section("Why so little is removed", _COMPRESSION, tables.compression(asked.compression)),
        _section("What points of the metric buy", _TRADED, tables.traded(asked.traded)),
        _section("Every cell", _SINGLY, tables.singly(found)),
        _section("Made with", "", _machines(found)),
    )
    return f"""# Do the gains hold?

Written by `make evidence` (`benchmarks/evidence`): {len(found)} of {planned} cells.{_marked(found)}
Each cell is one pass over the validation rows of a checkpoint that was fine-tuned with one seed, measured on held-out rows that
neither the fine-tuning nor the pass saw. Changes are after minus before; intervals are 95 % paired bootstrap intervals over the
held-out rows. Removed parameters are given as a share of all parameters and of those of the
[encoder](results.md#what-is-counted), the transformer layers, which hold 47 % of MiniLM's parameters and 78 % of MPNet-base's.
{_measured_otherwise(found)}
{tables.measured(found)}

{tables.arms()}
{"".join(sections)}"""


_BY_SET = """
Means over the seeds, with the standard deviation between seeds where there are several. *Judged* counts the passes. A pass is a
*loss* if the held-out loss rose reliably, or if the answers became worse by McNemar's test or, where the metric is not a share
of right answers, by its interval. It is a *gain* if the held-out loss fell reliably, and otherwise *none*. Losses do not depend
on the load of a machine; latencies do, and are the least certain of these figures. *Latency* is the untouched checkpoint's
divided by the compact model's. Where the head reads one position, the compact model also computes its last layer at that
position alone, which gives some per cent even where nothing was removed ([forms](forms.md#the-last-layers)).
"""
_OPTIMISM = """
The mean change of the loss over all cells of an arm, marked ones included, in per cent of the loss before: on the validation
rows, which decided, and on the held-out rows. The difference is how optimistic a report without held-out data is.
"""
_SEEDS = """
The held-out metric over the seeds of a set's fine-tuning, before and after the pass: range and standard deviation in points,
variance in points².
"""
_SEEDS_OVER_SETS = """
The counterpart of the paper's Table II, before and after the pass: the mean and the largest of the sets' variances, in points²,
and the mean over the sets of the metric of the best and of the worst seed. Marked passes are included, as a set of their own.
These figures are not directly comparable with the paper's: [the protocol](#what-is-not-as-in-the-paper) differs, and a variance
of two or three seeds is a rough figure.
"""
_PROTOCOL = """
The paper fine-tunes BERT-base for three epochs with ten seeds, and lets the pass decide on 15 % of the training rows, with
balanced classes. Here the models are smaller or different, the seeds are fewer, the epochs vary by set, and the deciding rows
are limited to what two slow cores can evaluate hundreds of times. SQuAD's own training set was not available: its dev set is
split by article, and TyDiQA's English questions supplement the training rows. AG News, SMS-spam and UD are not among the
paper's tasks, and SST-2 is split by whole sentences. For CoLA and RTE the validation set is that of the paper's authors (for
CoLA a sample of it), and GLUE's dev set is held out.
"""
_HEURISTICS = """
The counterparts of the paper's Table V (`random-order`, `layers-first`, `no-hard-attention`, `adaptive`) and Table VI (the
other five orders). Each changes one knob of the preset `paper`, whose row comes first, on the same checkpoints. On CoLA `paper`
uses the order that the paper advises for that task; the row below it uses the order of the other tasks. `adaptive` is probably
not the paper's adaptive threshold ([why](knobs.md#what-the-paper-found)).
"""
_ELEMENTS = f"""
The counterpart of the paper's Fig. 3: what the preset `paper` removed from each layer; layer 0 is next to the input.
*Attention* and *FFN* are whole blocks, a *group* is a twelfth of a block's neurons, and *{tables.HARD}* is hard attention.
Cells of earlier versions do not contain this and are left out. Layers after the last column lost nothing.
"""
_COMPRESSION = """
One set and one seed: the model is fine-tuned for the given number of epochs, then pruned by the paper's rule (`paper`), or with
one thing changed. The first loss and change are on the rows that the pass was given, the others on held-out rows.
"""
_TRADED = """
Seven tenths of the validation rows decided, and the loss was allowed to rise by half. Three tenths confirmed: the result is the
smallest model on the path before one whose metric on those rows may have fallen by more than the given points. *Held* says
whether the held-out rows, which decided and confirmed nothing, agree: *broken* if the whole 95 % interval of the change lies
below the limit, *perhaps* if the change itself does, and otherwise *kept*.
"""
_SINGLY = """
The same training on another machine gives a checkpoint with another digest. Arms whose digests differ must not be compared pair
by pair.
"""


def _measured_otherwise(found: Sequence[Content]) -> str:
    """How many cells are not what is asked for now, and what their marks mean."""
    marks = Counter(mark for one in found for mark in marks_of(one))
    if not marks:
        return ""
    lines = "\n".join(f"- \\{mark} ({marks[mark]}): {text}." for mark, text in MARKS.items() if marks[mark])
    return f"\nCells measured with other settings than the current ones are marked until they are measured again:\n\n{lines}\n"


def _section(heading: str, text: str, content: str) -> str:
    """A part of the document; nothing where no cell is about it."""
    return f"\n## {heading}\n{text}\n{content}\n" if content else ""


def _marked(found: Sequence[Content]) -> str:
    """A warning where sets were cut."""
    limits = sorted({one["rows"] for one in found if one["rows"] is not None})
    if not limits:
        return ""
    return f" **A trial run: at most {', '.join(map(str, limits))} rows of each part of a set, so it proves nothing.**"


def _machines(found: Sequence[Content]) -> str:
    """The machines and versions, with how many cells each measured."""
    names = ("axformer", "commit", "torch", "device", "cores", "threads")
    machines = (one["report"]["environment"] for one in found)
    told = Counter(", ".join(f"{name} {machine[name]}" for name in names) for machine in machines)
    return "\n".join(
        f"- {count} {'cell' if count == 1 else 'cells'}: {machine}" for machine, count in sorted(told.items())
    )


def main(results: Annotated[Path, typer.Argument(help="directory of the cells")] = RESULTS) -> None:
    """Print the document."""
    print(document_of(read_cells(results), planned=len(cells())), end="")


if __name__ == "__main__":
    typer.run(main)
