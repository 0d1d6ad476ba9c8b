"""The figures of a load, as a table."""

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.load.traffic import Measured

_PERCENTILES = (50, 95, 99)


def report(measured: Measured, claims: Sequence[float], sizes: Mapping[str, float], seconds: float) -> str:
    """Milliseconds of each kind of request and of claims, and bytes of rows."""
    everything = [value for values in measured.milliseconds.values() for value in values]
    lines = [
        f"{len(everything) / seconds:.0f} requests a second for {seconds:.0f} s; streams told {measured.events} events",
        "",
        "| ms | requests | p50 | p95 | p99 | refused |",
        "|---|---|---|---|---|---|",
    ]
    for kind, values in {**dict(sorted(measured.milliseconds.items())), "all requests": everything}.items():
        lines.append(_row(kind, values, measured.refused.get(kind, 0)))
    lines += [_row("claim", claims, 0), "", "| table | bytes a row, with indices |", "|---|---|"]
    lines += [f"| {table} | {size:.0f} |" for table, size in sizes.items()]
    return "\n".join(lines)


def _row(kind: str, values: Sequence[float], refused: int) -> str:
    percentiles = " | ".join(f"{value:.1f}" for value in np.percentile(values, _PERCENTILES))
    return f"| {kind} | {len(values)} | {percentiles} | {refused} |"
