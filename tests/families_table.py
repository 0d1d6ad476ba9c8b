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
    "test_masked_equals_removed_in_int8": "masked = removed in int8",
}
_HEAD = """# Families and tasks

What a pass can work on, and which laws hold there. Written by `make families` from a run of
[`tests/axformer/test_families.py`](../tests/axformer/test_families.py) on tiny real models (random weights, hidden size 32);
[add-a-family.md](add-a-family.md) says how to add a row.

- **masked = removed**: a model in which removed parts are multiplied by 0 gives the losses of the physically smaller one, with
  removed and emptied blocks, single heads, ranges of neurons and hard attention mixed (within 1e-5).
- **fast = plain**: the evaluator that a pass runs (cached prefixes, untouched samples skipped, the tail only where the head
  reads) gives the losses of whole forward passes, accepted and rejected trials mixed (within 1e-5).
- **saved = loaded**: a compact model loads by the Auto class and by `axformer.load`, and computes the same (within 1e-6).
- **dropped = fewer layers**: a model with dropped layers is the one that transformers builds with fewer layers and the weights
  of the others. Its losses are the same to the last bit, and its stock form has the same weights, configuration and logits.
- **parameters counted**: what a trial says it would remove is what surgery removes, exactly.
- **whole plan = stock**: a plan that keeps everything gives the losses of the untouched transformers model (within 1e-5).
- **masked = removed in int8**: the first law where a pass decides in int8 (within 1e-4).

Yes and no or degrees by one output, and several numbers, are told by the head of a regression, and questions without an answer
by that of the others: the laws above are theirs too; those of their losses are in
[`tests/axformer/tasks`](../tests/axformer/tasks).

✓ holds · ✗ does not · – does not apply: transformers has no such head for the family, or int8 does not reach its weights.
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
        tasks = list(dict.fromkeys(task for _, task in self._held))
        rows = [
            f"| {family} | {task} | {self._row(family, task)} |" for family in sorted(ARCHITECTURES) for task in tasks
        ]
        head = ["| family | task | " + " | ".join(LAWS.values()) + " |", "|---" * (2 + len(LAWS)) + "|"]
        count = sum(all(held.values()) for held in self._held.values())
        families = f"{len(ARCHITECTURES)} families; all laws that apply hold in"
        summary = f"\n{families} {count} of {len(self._held)} rows with a head.\n\n"
        self._path.write_text(_HEAD + summary + "\n".join(head + rows) + "\n", encoding="utf-8")

    def _row(self, family: str, task: str) -> str:
        marks = {None: "–", True: "✓", False: "✗"}
        return " | ".join(marks[self._held.get((family, task), {}).get(law)] for law in LAWS)
