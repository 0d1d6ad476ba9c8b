"""Knobs of earlier versions. Configs that were stored with them are still read: a value that means the same gets its name of
today, and a value that changed nothing is dropped."""

from collections.abc import Mapping
from typing import Any

REMOVED: dict[str, tuple[Any, str]] = {
    "loss_budget": (None, "tolerance, with majority_fraction, trades loss for size after the gains"),
    "precision": ("float32", "it was as fast as float32 at best; leave it out, the decisions are the same"),
    "safeguard_alpha": (0.05, "it was of the safeguards sign_test and paired; safeguard=5 takes no level"),
    "non_inferiority": (None, "it helped on one of two sets of data and harmed on the other; leave it out"),
    "evaluate_in": ("float32", "trials decide in float32; ask for the form onnx_int8, which has a test of its own"),
    "leaving": ("brain_surgeon", "the other orders lost more; leave it out"),
}
"""Knobs that are gone: the neutral value, which is dropped, and advice for any other value."""
RENAMED = frozenset({"hard_attention", "task_name", "safeguard_folds", "refit"})
"""Knobs that other knobs now say: ``attention_top_k``, ``order``, ``safeguard`` and ``repair``."""
FOLDS = 5
"""By chance alone, all 5 parts gain once in 32 trials; with 5 parts, each has a fifth of a small set."""


def of_today(knobs: Mapping[str, Any]) -> dict[str, Any]:
    """The same knobs as this version names them. Knobs that are gone stay if their value is not the neutral one."""
    today = {name: value for name, value in knobs.items() if name not in REMOVED or value != REMOVED[name][0]}
    if today.pop("hard_attention", True) is False:
        today["attention_top_k"] = None
    if today.pop("refit", False) is True:
        today["repair"] = "refit"
    task = today.pop("task_name", None)
    if task is not None and today.get("order", "auto") == "auto":
        today["order"] = task
    folds, safeguard = today.pop("safeguard_folds", None), today.get("safeguard")
    if safeguard == "none":
        today["safeguard"] = None
    elif safeguard == "folds" or (folds is not None and isinstance(safeguard, int)):
        today["safeguard"] = FOLDS if folds is None else folds
    return today


def refuse_removed(knobs: Mapping[str, Any]) -> None:
    """Refuse knobs that are gone.

    Raises:
        ValueError: there is one, with a value that would change something.
    """
    for name in knobs.keys() & REMOVED.keys():
        raise ValueError(
            f"knob {name}={knobs[name]!r} is of an earlier version and no longer there: {REMOVED[name][1]}"
        )
    if knobs.get("order") == "search":
        raise ValueError(
            "order=search is of an earlier version and no longer there: the command axformer orders makes a run in each order "
            "and compares them"
        )
    if knobs.get("safeguard") in ("sign_test", "paired"):
        raise ValueError(
            f"safeguard={knobs['safeguard']} is of an earlier version and no longer there: it accepted nothing on most data; "
            f"take {FOLDS}"
        )
