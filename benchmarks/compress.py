"""What compression costs on held-out rows: checkpoints of ``make bench`` at four budgets, and what each part of it is worth.

    python -m benchmarks.compress --sets var/bench/sets --checkpoints var/bench/checkpoints --only sst2
    python -m benchmarks.compress --document

Every cell is a file in ``benchmarks/results/compress``; those that are there are not measured again. The document takes them
all.
"""

import argparse
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from axformer.config import make_config
from axformer.intake.dataset import DataSource
from axformer.run import PruningRun
from axformer.scores.confidence import first_metric

RESULTS = Path("benchmarks/results/compress")
DOCUMENT = Path("docs/compress-results.md")
BUDGETS = (0.8, 0.65, 0.5, 0.35)
ALL_DECIDE: Mapping[str, Any] = {"method": "compress", "budgets": BUDGETS, "confirm": 0.0, "within_points": None}
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "compress": {},
    "without refit": {"repair": "none"},
    "magnitude": {"leaving": "magnitude"},
    "contiguous": {"leaving": "contiguous"},
    "magnitude, without refit": {"leaving": "magnitude", "repair": "none"},
}
"""What is changed, by the name of the variant."""
POINT = 100.0


def measure(checkpoint: Path, rows: Path, variant: str) -> dict[str, Any]:
    """One cell: the held-out figures of the untouched model and of every budget."""
    config = make_config("paper", {**ALL_DECIDE, **VARIANTS[variant]})
    started = time.monotonic()
    run = PruningRun.open(
        checkpoint, DataSource(str(rows / "validation.jsonl")), test=DataSource(str(rows / "test.jsonl")), config=config
    )
    trials = list(run.trials())
    metric = first_metric(dict(run.passes.path[0].test or {}))
    whole = run.passes.path[0].encoder_operations or 1
    points = [
        {
            "share": (point.encoder_operations or 0) / whole,
            "metric": (point.test or {})[metric],
            "loss": (point.test or {})["loss"],
            "estimated_speedup": point.estimated_speedup,
        }
        for point in run.passes.path
    ]
    return {
        "set": rows.name,
        "variant": variant,
        "metric": metric,
        "points": points,
        "rows": {"validation": trials[0].total},
        "seconds": trials[-1].seconds,
        "whole_seconds": time.monotonic() - started,
        "threads": torch.get_num_threads(),
    }


def document_of(cells: Iterable[Mapping[str, Any]]) -> str:
    """The tables, in points of the metric against the untouched model."""
    cells = sorted(cells, key=lambda cell: (cell["set"], list(VARIANTS).index(cell["variant"])))
    heads = " | ".join(f"{budget:g}" for budget in BUDGETS)
    lines = [
        "# What compression costs",
        "",
        "Made by `python -m benchmarks.compress`. Each row is one checkpoint (MiniLM, one seed) and one run of",
        "`method=compress` in which all validation rows decide and calibrate. Columns are shares of the encoder's operations;",
        "figures are the change of the metric on held-out rows, in points. The noise of one set is about 0.6 points.",
        "",
        f"| set | variant | metric, untouched | {heads} | deciding rows |",
        f"| --- | --- | --- | {' | '.join('---' for _ in BUDGETS)} | --- |",
    ]
    for cell in cells:
        base, *points = cell["points"]
        changes = " | ".join(f"{POINT * (point['metric'] - base['metric']):+.2f}" for point in points)
        name = cell["metric"].replace("_", " ")
        lines.append(
            f"| {cell['set']} | {cell['variant']} | {name} {base['metric']:.4f} | {changes} | "
            f"{cell['rows']['validation']:,} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure what is asked for and is not there, or write the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=Path, default=Path("var/bench/sets"))
    parser.add_argument("--checkpoints", type=Path, default=Path("var/bench/checkpoints"))
    parser.add_argument("--only", action="append", default=[], help="a set; may be repeated")
    parser.add_argument("--variant", action="append", default=[], choices=list(VARIANTS))
    parser.add_argument("--document", action="store_true", help="write the document of what is there")
    asked = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in asked.only:
        for variant in asked.variant or ["compress"]:
            file = RESULTS / f"{name}-{variant.replace(', ', '-').replace(' ', '-')}.json"
            if not file.exists():
                file.write_text(
                    json.dumps(measure(asked.checkpoints / name, asked.sets / name, variant), indent=1) + "\n"
                )
    if asked.document:
        DOCUMENT.write_text(document_of(json.loads(file.read_text()) for file in RESULTS.glob("*.json")))


if __name__ == "__main__":
    main()
