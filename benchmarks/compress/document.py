"""Writes ``docs/compress-results.md`` from the files of the cells alone.

python -m benchmarks.compress.document > docs/compress-results.md
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.compress import costs, promises, tables
from benchmarks.compress.cell import CALIBRATE, FEWER, TEST
from benchmarks.compress.grid import CONFIRM, cells
from benchmarks.compress.reading import RESULTS, Content, is_outdated, read_cells

DOCUMENT = Path("docs/compress-results.md")


def document_of(found: Sequence[Content]) -> str:
    """Write the document.

    Args:
        found: the cells, at least one.
    """
    sections = (
        _section("By set", _BY_SET, tables.by_set(found)),
        _section("Over all sets", _OVER_SETS, tables.over_sets(found)),
        _section("Beside the prototype", _PROTOTYPE, tables.beside_prototype(found)),
        _section("What was certified", _CERTIFIED + _tested_earlier(found), promises.by_points(found)),
        _section("What was kept", _KEPT, promises.by_set(found)),
        _section("What single parts are worth", _VARIANTS, tables.variants(found)),
        _section("Latency", _LATENCY, costs.latency(found)),
        _section("Time and tokens", _SECONDS, costs.seconds(found)),
    )
    return f"""# What compression costs

Made by `python -m benchmarks.compress`: {len(found)} of {len(cells())} cells.{_partial(found)} Each is a checkpoint that was
fine-tuned with one seed and one run of [`method=compress`](compress.md) over it.{_outdated(found)}

{_PROTOCOL}
{"".join(sections)}"""


def _partial(found: Sequence[Content]) -> str:
    return " **The others are not measured yet.**" if len(found) < len(cells()) else ""


def _outdated(found: Sequence[Content]) -> str:
    names = [f"`{one['cell']}`" for one in found if is_outdated(one)]
    if not names:
        return ""
    told = "Measured before the order of leaving changed, or the batches of a polish, and not again yet:"
    return f"\n\n**{told}** {', '.join(names)}."


def _tested_earlier(found: Sequence[Content]) -> str:
    """How many runs tested their models in the order of earlier versions."""
    earlier = sum(any("order" not in certified for certified in one["certified"]) for one in found)
    which = "All" if earlier == len(found) else f"{earlier}"
    told = f"{which} of these runs tested first what looked safest on the deciding rows. The order of the path, as now,"
    more = "certifies [more](certificate.md#the-order-and-how-many-rows-confirm)."
    return f"\n\n{told}\n{more}" if earlier else ""


def _section(heading: str, about: str, lines: Sequence[str]) -> str:
    """A section with a table; empty if the table has no rows."""
    if len(lines) <= _HEAD:
        return ""
    return "\n".join(["", f"## {heading}", "", about, "", *lines, ""])


_HEAD = 2
"""Number of lines of a table without rows."""
_PROTOCOL = f"""A run cuts to 0.8, 0.65, 0.5 and 0.35 of the encoder's operations. It is calibrated on {CALIBRATE:,}
rows of the training set, whose labels are not looked at ({FEWER["squad"][0]} of SQuAD, whose rows are long; fewer
where a set has fewer). {CONFIRM:.0%} of the validation rows are set apart to certify. Figures are of held-out rows
that no run has seen: at most {TEST:,} of a set ({FEWER["squad"][1]} of SQuAD), drawn by a fixed seed."""
_BY_SET = """The change of the metric on held-out rows, in points (hundredths), against the untouched model, by the
budget. Mean and standard deviation over seeds, where there are several; a seed is another training and another choice
of confirming rows."""
_OVER_SETS = """Means over the sets of MiniLM, each the mean of its seeds. The encoder's parameters and the operations
(of the whole model, by which one is faster on paper) are means too."""
_PROTOTYPE = """A prototype was measured on other splits of these sets, with one seed each."""
_CERTIFIED = """Of each run, also those of the variants below, the smallest model is chosen whose metric fell by less
than 1 point, or 2, with 95 % confidence on the confirming rows ([how](certificate.md)); else the untouched one is
kept. *Fell short*: on the held-out rows the metric of the chosen model fell by the points or more. *Beyond the
noise*: the whole 95 % interval of that fall (paired bootstrap) lies there; where a promise just holds one in forty
would. BCa bootstrap is the test of Pearson's correlation, and *asymptotic*."""
_KEPT = """The budget that was kept by each seed, in brackets its change on the held-out rows in points; – is the
untouched model. Few confirming rows certify little, whatever the model."""
_VARIANTS = """One seed, one checkpoint and the same rows for all. *Another training* is a checkpoint of the same recipe
and seed from another processor; its figures compare with each other, and less with the method's own row. *Order* is
that in which units leave a block.
*Fisher masks* is the method of Kwon and others (*A Fast Post-Training Pruning Framework for Transformers*, 2022),
written from the formulas: masks by the diagonal Fisher information of the gates within the same operations, then
swaps within each block, then one scalar for each unit, fitted to the untouched block's output. Unlike
`method=compress` it looks at the labels of the calibration rows. Two things differ from the paper: as many
calibration rows as here (it takes 2,000), and the scalars are fitted to what a block adds, not to its sum with the
residual stream."""
_LATENCY = """Medians of turns that all models took in one run, as shares of the untouched model's in the same
runtime: one row of the median length, and batches of 32. *Nothing removed* is this package's class with all units,
which computes the last layer at one position where the head reads one. *Load*: processes that wanted one of the
machine's two cores; above 2, others slowed all models alike."""
_SECONDS = """In seconds, of the seed that had the machine most to itself; *load* as above. *Tokens per unknown*: tokens
that a block was fitted to, for each column of it, in the block with the fewest. *Table* is what all budgets share;
*measured too* is the run with its figures on deciding, confirming and held-out rows."""


def main(
    results: Annotated[Path, typer.Option(help="where the cells are kept")] = RESULTS,
) -> None:
    """Print the document."""
    print(document_of(read_cells(results)), end="")


if __name__ == "__main__":
    typer.run(main)
