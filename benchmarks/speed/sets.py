"""The validation sets that speed is measured on: whole, as the paper's authors and GLUE cut them.

Each stands with the checkpoint of ``benchmarks/checkpoints.py`` that has not learned from its file. (Four of CoLA's 1,301
sentences stand in the authors' training file too; for speed and verdicts that is nothing.)
"""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.rows import write_rows
from benchmarks.sets.parts import sample
from benchmarks.sets.sources import read_labelled
from benchmarks.split import label_of


@dataclass(frozen=True)
class SpeedSet:
    """One validation set."""

    name: str
    """Also the name of its checkpoint."""
    title: str
    file: str
    """Below the directory of the public sets."""
    rows: int
    """Of the whole set; targets are for these."""
    cut: int
    """Rows on which every technique is measured, and all verdicts are compared with the naive reference."""


SPEED_SETS = (
    SpeedSet("cola", "CoLA val", "CoLA/val.jsonl", 1301, 300),
    SpeedSet("rte", "RTE val", "RTE/val.jsonl", 363, 100),
    SpeedSet("sst2", "SST-2 sentences dev", "SST-2-sentences/dev.jsonl", 872, 200),
)


def chosen_sets(names: list[str] | None) -> list[SpeedSet]:
    """The sets with these names, or all.

    Raises:
        ValueError: one is unknown.
    """
    by_name = {one.name: one for one in SPEED_SETS}
    for name in names or []:
        if name not in by_name:
            raise ValueError(f"set '{name}' is unknown; there are {', '.join(by_name)}")
    return [by_name[name] for name in names or by_name]


def write_set(speed_set: SpeedSet, source: Path, target: Path, rows: int | None) -> int:
    """Write a set, or a class-balanced cut of ``rows``, as JSON Lines; gives how many rows were written.

    Raises:
        FileNotFoundError: the public sets are not in ``source``.
    """
    path = source / speed_set.file
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; name the directory that holds {speed_set.file} with --source")
    everything = read_labelled(path)
    wanted = sample(everything, rows or len(everything), label_of)
    write_rows(target, wanted)
    return len(wanted)
