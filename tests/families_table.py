"""A pytest plugin that writes ``docs/families.md`` from the outcomes of the laws: ``make families`` loads it."""

from collections import defaultdict
from pathlib import Path

import pytest

from axformer.architectures.registry import ARCHITECTURES

LAWS = {
    "test_masked_equals_removed": "masked = removed",
    "test_fast_equals_plain": "fast = plain",
    "test_saved_equals_loaded": "saved = loaded",
    "test_dropped_equals_fewer_layers": "dropped = fewer layers",
    "test_parameters_are_counted": "parameters counted",
    "test_keeping_everything_changes_nothing": "whole plan = stock",
}
_HEAD = """# Families and tasks

This page shows which models a run takes, and that every law holds for each; `make families` writes it from
[`tests/axformer/test_families.py`](../tests/axformer/test_families.py), over tiny real models.
[Adding a row](add-a-family.md).

| law | what it says |
|---|---|
| masked = removed | parts multiplied by 0 give the losses of the physically smaller model (1e-5) |
| fast = plain | the evaluator of a pass gives the losses of whole forward passes (1e-5) |
| saved = loaded | a compact model loads by the Auto class and by `axformer.load`, and computes the same (1e-6) |
| dropped = fewer layers | a model with dropped layers is the one that transformers builds with fewer, to the last bit |
| parameters counted | what a trial says it removes is what surgery removes |
| whole plan = stock | a plan that keeps everything gives the losses of transformers (1e-5) |

✓ all hold · ✗ which do not · – transformers has no such head. Yes-or-no and several numbers share the head of a regression;
questions without an answer that of the others.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--families-table", type=Path, required=True, help="where to write the table")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Outcomes(config.getoption("--families-table")))


class _Outcomes:
    """Which law held for which family and task."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: dict[tuple[str, str], dict[str, bool]] = defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        law, _, case = report.nodeid.rpartition("::")[2].partition("[")
        if law in LAWS and (report.when == "call" or report.failed):
            family, _, task = case.removesuffix("]").rpartition("-")
            self._held[family, task][law] = report.passed

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(page(self._held), encoding="utf-8")


def page(held: dict[tuple[str, str], dict[str, bool]]) -> str:
    """The page, of which test held for which family and task."""
    tasks = list(dict.fromkeys(task for _, task in held))
    rows = [
        f"| {family} | {' | '.join(_cell(held.get((family, task), {})) for task in tasks)} |"
        for family in sorted(ARCHITECTURES)
    ]
    head = [f"| family | {' | '.join(tasks)} |", "|---" * (1 + len(tasks)) + "|"]
    return _HEAD + "\n" + "\n".join(head + rows) + "\n"


def _cell(held: dict[str, bool]) -> str:
    if not held:
        return "–"
    failed = [LAWS[test] for test, holds in held.items() if not holds]
    return f"✗ {', '.join(failed)}" if failed else "✓"
