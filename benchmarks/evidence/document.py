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
        _section("What validation data promises", _OPTIMISM, tables.optimism(compared)),
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

Made by `make evidence` (`benchmarks/evidence`): {len(found)} of {planned} cells.{_marked(found)}
Each is a checkpoint fine-tuned with one seed, and one pass over its validation rows, measured on held-out rows that neither has
seen. Changes are after less before; intervals are 95 % paired bootstrap intervals over the held-out rows. Parameters that were
removed stand as a share of all, and of those of the [encoder](results.md#what-is-counted): the transformer layers, which hold
47 % of MiniLM's and 78 % of MPNet-base's.
{_measured_otherwise(found)}
{tables.measured(found)}

{tables.arms()}
{"".join(sections)}"""


_BY_SET = """
Means over the seeds, with the standard deviation between seeds where there are several. *Judged* counts the passes whose
held-out loss rose reliably, or whose answers became worse by McNemar's test, or, where the metric is no share of right answers,
by its interval (loss), whose held-out loss fell reliably (gain), or neither (none). Losses do not depend on what else a machine
does; latencies do, and are the least sure of these figures. A latency is that of the untouched checkpoint over that of the
compact model, which besides computes its last layer at one position where the head reads one: some per cent of it are there
where nothing was removed ([forms](forms.md#the-last-layers)).
"""
_OPTIMISM = """
The mean change of the loss over all cells of an arm, marked ones too, in per cent of the loss before, on validation rows, which
decided, and on held-out ones. What lies between the two is how optimistic a report without held-out data is.
"""
_SEEDS = """
The held-out metric, in points, over the seeds of a set's fine-tuning: least to most, standard deviation, and variance in
points², before and after the pass.
"""
_SEEDS_OVER_SETS = """
The counterpart of the paper's Table II: the mean and the largest of the variances of a set, in points², and the mean over the
sets of the metric of the best and of the worst seed, before and after the pass. Marked passes are among them, as a set of their
own. These figures cannot simply be put beside the paper's: [the protocol](#what-is-not-as-in-the-paper) is another, and a
variance of two or three seeds is itself a rough figure.
"""
_PROTOCOL = """
The paper fine-tunes BERT-base for three epochs with ten seeds, and keeps 15 % of the rows to train on, with balanced classes,
for the pass to decide on. Here models are smaller or other ones, seeds fewer and epochs not the same for all sets, and no more
rows decide than two slow cores bear, since a pass evaluates them hundreds of times. SQuAD's own training set was not at hand:
its dev set is cut by article, and TyDiQA's English questions help to train. AG News, SMS-spam and UD are not among the paper's
tasks, and SST-2 is split by whole sentences. For CoLA and RTE the paper's authors cut the validation set (of CoLA's a sample is
taken), and GLUE's dev is held out.
"""
_HEURISTICS = """
The counterparts of the paper's Table V (`random-order`, `layers-first`, `no-hard-attention`, `adaptive`) and Table VI (the
other five orders), one thing changed in the preset `paper`, which stands first, on the same checkpoints. On CoLA `paper` takes
the order that the paper advises for that task, and the one of all other tasks stands beside it. `adaptive` is probably not the
paper's adaptive threshold ([why](knobs.md#what-the-paper-found)).
"""
_ELEMENTS = f"""
The counterpart of the paper's Fig. 3: what the preset `paper` took from each layer, 0 being next to the input. *Attention*
and *FFN* are whole blocks, a *group* is a twelfth of a block's neurons, and *{tables.HARD}* is hard attention. Passes that were
measured before cells kept this are not in it. Layers behind the last column lost nothing.
"""
_COMPRESSION = """
One set, one seed: fine-tuned for so many epochs, then pruned by the paper's rule (`paper`) and with one thing
changed. Loss and change that stand first are of the rows that the pass was given, the others of held-out ones.
"""
_TRADED = """
Seven tenths of the validation rows decided, with half of the loss before to spend. Three tenths confirmed, and the smallest
model was kept before one whose metric there may have fallen by more than so many points. *Held* says whether the held-out rows,
which neither part has seen, bear that out: it is broken where the whole 95 % interval of the change lies below it, and perhaps
where the change itself does.
"""
_SINGLY = """
The same training on another machine gives a checkpoint with another digest: arms whose digests differ are not to be compared
pair by pair.
"""


def _measured_otherwise(found: Sequence[Content]) -> str:
    """How many cells are not what is asked for now, and what their marks mean."""
    marks = Counter(mark for one in found for mark in marks_of(one))
    if not marks:
        return ""
    lines = "\n".join(f"- \\{mark} ({marks[mark]}): {text}." for mark, text in MARKS.items() if marks[mark])
    return f"\nCells that were measured otherwise than is asked for now are marked, until they are measured again:\n\n{lines}\n"


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
