"""What the benchmark keeps: a file a set, one a cut, and the report and the picture of all that are there.

So sets may be measured in runs of their own, and a run replaces the figures of its sets alone.
"""

from pathlib import Path

from benchmarks.speed.plot import draw
from benchmarks.speed.record import Result
from benchmarks.speed.report import write_report
from benchmarks.speed.sets import SPEED_SETS

_CUT = "-cut"


def write_result(result: Result, output: Path) -> None:
    """Keep the figures of a set."""
    _write(result, output, "")


def write_cut(result: Result, output: Path) -> None:
    """Keep the figures of a set's cut."""
    _write(result, output, _CUT)


def _write(result: Result, output: Path, suffix: str) -> None:
    path = output / "results" / f"{result.set.name}{suffix}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")
    results, cuts = _read(output, ""), _read(output, _CUT)
    if results:
        (output / "results" / "speed.svg").write_text(draw([one.set for one in results]), encoding="utf-8")
        (output / "RESULTS.md").write_text(write_report(results, cuts), encoding="utf-8")


def _read(output: Path, suffix: str) -> list[Result]:
    paths = [output / "results" / f"{one.name}{suffix}.json" for one in SPEED_SETS]
    return [Result.model_validate_json(path.read_text("utf-8")) for path in paths if path.is_file()]
