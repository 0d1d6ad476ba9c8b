"""Reports as earlier versions wrote them: forms with intervals, and nothing that says what they are judged by."""

from typing import Any


def form(name: str, ms: float, accuracy: float, ends: tuple[float, float] | None = None, **more: Any) -> dict[str, Any]:
    speed = [
        {"batch": 1, "length": None, "p50_ms": ms, "inputs_per_second": 1000 / ms},
        {"batch": 32, "length": None, "p50_ms": 20 * ms, "inputs_per_second": 1600 / ms},
        {"batch": 1, "length": 64, "p50_ms": 99.0, "inputs_per_second": 9.0},
    ]
    test = {"loss": 0.3, "accuracy": accuracy}
    change = None if ends is None else {"differences": {"accuracy": {"value": accuracy - 0.85, "interval": list(ends)}}}
    made = {"name": name, "made": True, "directory": None if name == "base" else name, "bytes": 90_000_000}
    return made | {"speed": speed, "validation": test, "test": test, "test_change": change} | more


def report(*forms: dict[str, Any], points: float | None = None) -> dict[str, Any]:
    certificate = None if points is None else {"points": points}
    return {"base_form": form("base", 10.0, 0.85), "forms": list(forms), "certificate": certificate}
