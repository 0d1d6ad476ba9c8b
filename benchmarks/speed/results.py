"""What the benchmark keeps: a file a set, one a cut, and the report and the picture of all that are there.

So sets may be measured in runs of their own, and a run replaces the figures of its sets alone.
"""

from pathlib import Path

from benchmarks.speed.plot import draw
from benchmarks.speed.record import Cut, Record, Result
from benchmarks.speed.report import write_report
from benchmarks.speed.sets import SPEED_SETS


def write_result(result: Result, output: Path) -> None:
    """Keep the figures of a set."""
    _write(result, _set_file(output, result.set.name), output)


def write_cut(cut: Cut, output: Path) -> None:
    """Keep the verdicts on the cut of a set."""
    _write(cut, _cut_file(output, cut.name), output)


def _write(record: Record, path: Path, output: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
    _write_report(output)


def _write_report(output: Path) -> None:
    names = [one.name for one in SPEED_SETS]
    results = [
        Result.model_validate_json(path.read_text("utf-8"))
        for path in (_set_file(output, name) for name in names)
        if path.is_file()
    ]
    cuts = [
        Cut.model_validate_json(path.read_text("utf-8"))
        for path in (_cut_file(output, name) for name in names)
        if path.is_file()
    ]
    if results:
        (output / "results" / "speed.svg").write_text(draw([one.set for one in results]), encoding="utf-8")
        (output / "RESULTS.md").write_text(write_report(results, cuts), encoding="utf-8")


def _set_file(output: Path, name: str) -> Path:
    return output / "results" / f"{name}.json"


def _cut_file(output: Path, name: str) -> Path:
    return output / "results" / f"{name}-verdicts.json"
