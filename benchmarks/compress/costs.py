"""Tables of times: latency of the models, and duration of the runs."""

from collections.abc import Mapping, Sequence
from statistics import mean

from benchmarks.compress.grid import COMPRESS
from benchmarks.compress.latency import ONNX, PYTORCH, UNTOUCHED, WHOLE
from benchmarks.compress.reading import Content
from benchmarks.compress.tables import NONE, Lines, budget_heads, compressed, table

_RUNTIMES = {PYTORCH: "PyTorch", ONNX: "ONNX Runtime"}


def latency(found: Sequence[Content]) -> Lines:
    """Latencies as shares of the untouched model's in the same runtime."""
    rows = []
    for one in found:
        if "latency" not in one:
            continue
        measured = one["latency"]
        for workload in measured["workloads"]:
            for runtime, title in _RUNTIMES.items():
                rows.append(
                    [
                        *(one["data"], one["model"], f"{workload['batch']} of {workload['tokens']:.0f} tokens", title),
                        *_shares(workload[runtime]),
                        *(str(workload["turns"]), _load(measured["load"])),
                    ]
                )
    head = ["set", "model", "inputs", "runtime", "untouched, ms", "nothing removed", *budget_heads(), "turns", "load"]
    return table(head, rows) if rows else []


def seconds(found: Sequence[Content]) -> Lines:
    """Durations of runs, of each set the one that had the machine most to itself, and numbers of calibration tokens."""
    rows = []
    for (model, data), group in compressed(found).items():
        quietest = min(group, key=lambda one: max(one["load"]))
        taken, points = quietest["seconds"], quietest["points"][1:]
        unknown = [point["tokens_per_unknown"] for point in points if point["tokens_per_unknown"] is not None]
        rows.append(
            [
                *(data, model, f"{quietest['rows']['calibration']:,}", f"{quietest['tokens']:,}"),
                f"{min(unknown):.0f} to {max(unknown):.0f}" if unknown else NONE,
                NONE if taken["shared"] is None else f"{taken['shared']:.0f}",
                *(f"{mean(taken['budgets']):.0f}", f"{taken['run']:.0f}", f"{taken['whole']:.0f}"),
                *(str(quietest["threads"]), _load(quietest["load"])),
            ]
        )
    head = [
        "set",
        "model",
        "rows fitted on",
        "tokens",
        "tokens per unknown",
        "table",
        "each budget",
        "run",
        "measured too",
    ]
    return table([*head, "threads", "load"], rows)


def _shares(taken: Mapping[str, float]) -> list[str]:
    whole = taken[UNTOUCHED]
    shares = [f"{taken[name] / whole:.2f}" if name in taken else NONE for name in (WHOLE, *budget_heads())]
    return [f"{whole:.1f}", *shares]


def _load(values: Sequence[float]) -> str:
    return f"{min(values):.0f} to {max(values):.0f}"


def is_timed(found: Sequence[Content]) -> bool:
    """Whether any cell has the duration of the standard variant."""
    return any(one["variant"] == COMPRESS for one in found)
