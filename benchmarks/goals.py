"""The table of goals in README: what each goal brought the demo's model, from the reports of real runs.

``python -m benchmarks.goals`` prints it. The report of each run lies in ``benchmarks/results/goals``, with the processor time
that it took (``time``: user and system), on one thread. The machine had other work, so each run measured its speeds on a core
of its own.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axformer.reporting.deploy_table import deployables
from axformer.reporting.deployable import TITLES, Deployables
from axformer.reporting.rendering import Table

RESULTS = Path(__file__).parent / "results" / "goals"
COMMAND = "axformer prune var/demo/checkpoint --data var/demo/{data}.jsonl --test var/demo/test.jsonl --output {name} {options}"


@dataclass(frozen=True)
class Ran:
    """A goal and its run."""

    name: str
    """Of the file of its report."""
    wanted: str
    """The goal for people."""
    data: str
    """Name of the validation data, without its suffix."""
    options: str

    @property
    def said(self) -> str:
        """How one says it."""
        return f"`{self.options}`" if self.options else "nothing, or `--goal no-worse`"

    @property
    def command(self) -> str:
        """The command that was run."""
        return COMMAND.format(
            data=self.data, name=self.name, options=f"{self.options} --forms compact,onnx_int8".strip()
        )

    @property
    def content(self) -> Mapping[str, Any]:
        """Its report and its processor time."""
        content: Mapping[str, Any] = json.loads((RESULTS / f"{self.name}.json").read_text(encoding="utf-8"))
        return content

    @property
    def report(self) -> Mapping[str, Any]:
        """The content of ``report.json``, without the path."""
        report: Mapping[str, Any] = self.content["report"]
        return report

    @property
    def forms(self) -> Deployables:
        """What can be deployed of it."""
        found = deployables(self.report)
        assert found is not None, "a run of this version has forms"
        return found

    @property
    def minutes(self) -> float:
        """Minutes of one processor core."""
        return float(self.content["processor_seconds"]) / 60


RUNS = (
    Ran("no-worse", "no worse, perhaps better", "validation", ""),
    Ran("within-points", "as small and fast as N points allow", "more", "--goal within-points=2"),
    Ran("speedup", "at least X times fewer operations", "validation", "--goal operations=2"),
    Ran("as-paper", "the paper's algorithm", "validation", "--goal as-paper"),
)


def brought(ran: Ran) -> str:
    """What a run brought, in a sentence for the table."""
    report, forms = ran.report, ran.forms
    base, pruned = report["base"], report["pruned"]
    left = pruned["parameters"] / base["parameters"]
    gone = "nothing removed" if left == 1 else f"{1 - left:.1%} of the parameters gone"
    operations = report["estimated_speedup"]
    fewer = "" if operations == 1 else f", {operations:.2f} times fewer operations"
    best = forms.best
    if best is None:
        return f"{gone}{fewer}. {forms.sentence}"
    if best.metric is None or best.change is None:
        raise ValueError(f"{ran.name} was measured without held-out data")
    metric = f"{forms.metric} {100 * best.metric:.2f} ({100 * best.change:+.2f})"
    title = f"{TITLES[best.name]} of your own model" if best.of_untouched else best.title
    certificate = report["certificate"]
    sure = "" if certificate is None else f". {certificate['sentence'].rstrip('.')}"
    return f"{gone}{fewer}; {title} {best.times:.1f} times as fast, {metric}{sure}"


RESEARCH = ("no-worse", "as-paper")
"""The runs that are shown to researchers, in ``docs/pass.md``; README has the others."""


def table(runs: Sequence[Ran] = RUNS) -> Table:
    """The runs as a table."""
    rows = [[ran.wanted, ran.said, brought(ran), f"{ran.minutes:.1f}"] for ran in runs]
    return Table(["you want", "say", "result on the demo's model", "minutes on one core"], rows)


if __name__ == "__main__":
    print(table().markdown())
