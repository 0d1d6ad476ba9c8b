"""What the file of a cell says: the figures that the document's tables are made of."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from axformer.reporting.findings import judged
from axformer.wire.report import Comparison
from axformer.wire.verdicts import Judgement

RESULTS = Path("benchmarks/results/evidence")
"""Where the cells are kept, with the project: they take hours to measure."""
Content = Mapping[str, Any]
"""A cell's file."""
LOSS = "loss"
VALIDATION, CONFIRMING, TEST = "validation", "confirming", "test"
_OF_QUESTIONS = ("exact_match", "f1")
ENCODERS = {"minilm": 10_646_784, "mpnet-base": 85_054_464}
"""Parameters of the transformer layers of the models, for cells that are older than this figure in reports; they follow from
the models' dimensions, and a test counts them."""


def read_cells(results: Path) -> list[Content]:
    """All cells that are there, by their names."""
    return [read_cell(file) for file in sorted(results.glob("*.json"))]


def read_cell(file: Path) -> Content:
    """One cell."""
    content: Content = json.loads(file.read_text(encoding="utf-8"))
    return content


def metrics_of(one: Content) -> tuple[str, ...]:
    """What its held-out rows are told by, in the order of weight. The paper scores SQuAD by exact match, others by F1."""
    return _OF_QUESTIONS if _OF_QUESTIONS[0] in one["report"]["base"][TEST] else (one["metric"],)


def before(one: Content, data: str, figure: str) -> float:
    """A figure of the untouched model on these data."""
    value: float = one["report"]["base"][data][figure]
    return value


def after(one: Content, data: str, figure: str) -> float:
    """The same of the pruned one."""
    value: float = one["report"]["pruned"][data][figure]
    return value


def change(one: Content, data: str, figure: str) -> float:
    """After less before."""
    value: float = one["report"]["comparison"][data]["differences"][figure]["value"]
    return value


def change_with_interval(one: Content, data: str, figure: str) -> str:
    """For people: the change, and its 95 % paired bootstrap interval."""
    found = one["report"]["comparison"][data]["differences"][figure]
    low, high = found["interval"]
    return f"{found['value']:+.4f} [{low:+.4f}, {high:+.4f}]"


def judgement(one: Content) -> Judgement:
    """What held-out rows say of the pruned model, by the rule of today: a cell may be older."""
    report = one["report"]
    return judged(report["task"], before(one, TEST, LOSS), Comparison.model_validate(report["comparison"][TEST]))


def relative_change(one: Content, data: str) -> float:
    """Of the loss, as a share of the loss before."""
    return change(one, data, LOSS) / before(one, data, LOSS)


def removed_share(one: Content) -> float:
    """Of the parameters."""
    report = one["report"]
    return float(1 - report["pruned"]["parameters"] / report["base"]["parameters"])


def removed_share_of_encoder(one: Content) -> float | None:
    """Of the parameters of the transformer layers, which all that is removed belongs to; null of a model that is not known."""
    report = one["report"]
    whole = report["base"].get("encoder_parameters", ENCODERS.get(one["model"]))
    return None if whole is None else (report["base"]["parameters"] - report["pruned"]["parameters"]) / whole


def speed(one: Content) -> float:
    """How many times as fast one input was answered, as measured."""
    report = one["report"]
    return float(report["base"]["latency_ms"] / report["pruned"]["latency_ms"])


def kept(one: Content) -> tuple[int, int]:
    """How many acceptances the result holds, and how many there were."""
    path: Sequence[Mapping[str, Any]] = one["report"]["path"]
    return next(place for place, point in enumerate(path) if point["kept"]), len(path) - 1
