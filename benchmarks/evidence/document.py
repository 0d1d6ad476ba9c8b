"""``docs/evidence.md`` from the files of the cells alone.

python -m benchmarks.evidence.document > docs/evidence.md
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean, median, stdev
from typing import Annotated, Any

import typer

from benchmarks.evidence.grid import ARMS, Arm, cells, compression_cells

RESULTS = Path("benchmarks/results/evidence")
"""Where the cells are kept, with the project: they take hours to measure."""
Content = Mapping[str, Any]
"""A cell's file."""
_LOSS = "loss"
_DIGITS = 8
_VERDICTS = (("gain", "gain"), ("no_reliable_gain", "none"), ("loss", "loss"))


def read_cells(results: Path) -> list[Content]:
    """All cells that are there, by their names."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(results.glob("*.json"))]


def document_of(found: Sequence[Content], planned: int) -> str:
    """The document.

    Args:
        found: cells, at least one.
        planned: how many there are when all are measured.
    """
    asked = {cell.name: cell.checkpoint.epochs for cell in compression_cells()}
    compared = [one for one in found if one["cell"] not in asked]
    compressed = [(asked[one["cell"]], one) for one in found if one["cell"] in asked]
    return f"""# Do the gains hold?

Made by `make evidence` (`benchmarks/evidence`): {len(found)} of {planned} cells. {_marked(found)}
Each is a checkpoint fine-tuned with one seed, and one pass over its validation rows, measured on held-out rows that neither has
seen. Changes are after less before; intervals are 95 % paired bootstrap intervals over the held-out rows.

{_arms()}

## By set

Means over the seeds, with the standard deviation between seeds where there are several. *Judged* counts the passes whose
held-out loss fell reliably (gain), rose reliably (loss), or neither (none). Losses do not depend on what else a machine does;
latencies do, and are the least sure of these figures.

{_table(_SUMMARY, _summaries(compared))}

## What validation data promises

The mean change of the loss over all cells of an arm, in per cent of the loss before, on validation rows, which decided, and on
held-out ones. What lies between the two is how optimistic a report without held-out data is.

{_table(_OPTIMISM, _optimism(compared))}

## Why so little is removed

One set, one seed: fine-tuned for so many epochs, then pruned by the paper's rule (`paper`) and with one thing
changed. Loss and change that stand first are of the rows that the pass was given, the others of held-out ones.

{_table(_COMPRESSION, [_compressed(*one) for one in sorted(compressed, key=_order)])}

## Every cell

The same training on another machine gives a checkpoint with another digest: arms whose digests differ are not to be compared
pair by pair.

{_table(_SINGLE, [_single(one) for one in found])}

## Made with

{_machines(found)}
"""


_SUMMARY = (
    *("set", "model", "arm", "seeds", "validation loss", "held-out loss", "metric", "held-out metric", "judged"),
    *("parameters removed", "operations", "latency"),
)
_OPTIMISM = ("arm", "cells", "validation loss", "held-out loss", "between them")
_COMPRESSION = (
    *("model", "epochs", "arm", "rows", "loss before", "change", "parameters removed"),
    *("held-out loss before", "change", "metric", "before", "change", "operations"),
)
_SINGLE = (
    *(
        "cell",
        "checkpoint",
        "rows",
        "held-out loss before",
        "change",
        "metric",
        "before",
        "change",
        "McNemar p",
        "parameters removed",
    ),
    *("kept", "seconds"),
)


def _marked(found: Sequence[Content]) -> str:
    """A warning where sets were cut."""
    limits = sorted({one["rows"] for one in found if one["rows"] is not None})
    if not limits:
        return ""
    return f"**A trial run: at most {', '.join(map(str, limits))} rows of each part of a set, so it proves nothing.**"


def _arms() -> str:
    rows = [[f"`{name}`", f"`{arm.preset}`", ", ".join(_changed(arm)) or "none"] for name, arm in ARMS.items()]
    return _table(("arm", "preset", "what is changed"), rows)


def _changed(arm: Arm) -> list[str]:
    rows = [] if arm.validation_rows is None else [f"{arm.validation_rows} validation rows"]
    return [*(f"`{knob}={value}`" for knob, value in arm.knobs.items()), *rows]


def _summaries(found: Sequence[Content]) -> list[list[str]]:
    def group(one: Content) -> tuple[str, str, str]:
        return one["model"], one["data"], one["arm"]

    return [_summary(list(same)) for _, same in groupby(sorted(found, key=group), key=group)]


def _summary(same: Sequence[Content]) -> list[str]:
    """Cells that differ by their seed."""
    first = same[0]
    judged = Counter(one["report"]["finding"]["verdict"] for one in same)
    metric = first["metric"]
    return [
        *(first["data"], first["model"], first["arm"], f"{len(same)}"),
        _spread([_change(one, "validation", _LOSS) for one in same]),
        _spread([_change(one, "test", _LOSS) for one in same]),
        metric.replace("_", " "),
        _spread([_change(one, "test", metric) for one in same]),
        ", ".join(f"{judged[name]} {word}" for name, word in _VERDICTS if judged[name]),
        f"{mean(_removed(one) for one in same):.1%}",
        f"{mean(one['report']['estimated_speedup'] for one in same):.2f}x fewer",
        f"{median(_speed(one) for one in same):.2f}x",
    ]


def _optimism(found: Sequence[Content]) -> list[list[str]]:
    rows = []
    for arm in ARMS:
        same = [one for one in found if one["arm"] == arm]
        if same:
            promised, kept = (mean(_relative(one, data) for one in same) for data in ("validation", "test"))
            rows.append([f"`{arm}`", f"{len(same)}", f"{promised:+.1%}", f"{kept:+.1%}", f"{kept - promised:+.1%}"])
    return rows


def _compressed(epochs: int, one: Content) -> list[str]:
    report, metric = one["report"], one["metric"]
    base, changes = report["base"], report["comparison"]
    return [
        *(one["model"], f"{epochs}", f"`{one['arm']}`", f"{report['data']['validation']['rows']:,}"),
        f"{base['validation'][_LOSS]:.4f}",
        _bracketed(changes["validation"]["differences"][_LOSS]),
        f"{_removed(one):.1%}",
        f"{base['test'][_LOSS]:.4f}",
        _bracketed(changes["test"]["differences"][_LOSS]),
        metric.replace("_", " "),
        f"{base['test'][metric]:.4f}",
        _bracketed(changes["test"]["differences"][metric]),
        f"{report['estimated_speedup']:.2f}x fewer",
    ]


def _order(asked: tuple[int, Content]) -> tuple[str, int, int]:
    """By model and epochs, then in the order of the arms."""
    epochs, one = asked
    return one["model"], epochs, list(ARMS).index(one["arm"])


def _single(one: Content) -> list[str]:
    report, metric = one["report"], one["metric"]
    comparison, base = report["comparison"]["test"], report["base"]["test"]
    test = comparison["mcnemar"]
    kept, accepted = _kept(report["path"])
    return [
        one["cell"],
        f"`{one['checkpoint'][:_DIGITS]}`",
        f"{report['data']['validation']['rows']:,} and {report['data']['test']['rows']:,}",
        f"{base[_LOSS]:.4f}",
        _bracketed(comparison["differences"][_LOSS]),
        metric.replace("_", " "),
        f"{base[metric]:.4f}",
        _bracketed(comparison["differences"][metric]),
        "" if test is None else f"{test['p_value']:.3f} (+{test['gained']} −{test['lost']})",
        f"{_removed(one):.1%}",
        f"{kept} of {accepted}",
        f"{report['seconds']:.0f}",
    ]


def _kept(path: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """How many acceptances the result holds, and how many there were."""
    return next(place for place, point in enumerate(path) if point["kept"]), len(path) - 1


def _change(one: Content, data: str, figure: str) -> float:
    change: float = one["report"]["comparison"][data]["differences"][figure]["value"]
    return change


def _relative(one: Content, data: str) -> float:
    before: float = one["report"]["base"][data][_LOSS]
    return _change(one, data, _LOSS) / before


def _removed(one: Content) -> float:
    before, after = (one["report"][model]["parameters"] for model in ("base", "pruned"))
    return float(1 - after / before)


def _speed(one: Content) -> float:
    before, after = (one["report"][model]["latency_ms"] for model in ("base", "pruned"))
    return float(before / after)


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):+.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else "")


def _bracketed(change: Mapping[str, Any]) -> str:
    low, high = change["interval"]
    return f"{change['value']:+.4f} [{low:+.4f}, {high:+.4f}]"


def _machines(found: Sequence[Content]) -> str:
    """The machines and versions, with how many cells each measured."""
    names = ("axformer", "commit", "torch", "device", "cores", "threads")
    machines = (one["report"]["environment"] for one in found)
    told = Counter(", ".join(f"{name} {machine[name]}" for name in names) for machine in machines)
    return "\n".join(f"- {count} cells: {machine}" for machine, count in sorted(told.items()))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def main(results: Annotated[Path, typer.Argument(help="directory of the cells")] = RESULTS) -> None:
    """Print the document."""
    print(document_of(read_cells(results), planned=len(cells())), end="")


if __name__ == "__main__":
    typer.run(main)
