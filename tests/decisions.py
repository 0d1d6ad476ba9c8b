"""Writes what passes decide, to compare two versions of the code: plans, and traces without their times.

    python -m tests.decisions before    # at the one version
    python -m tests.decisions after     # at the other
    diff -r before after

Six families by three presets on fixed seeds, with some knobs that have a pass trade or stop; each is also stopped in
the middle and resumed. The floating point sums of one machine are compared, so both have to run on the same.
"""

import json
import sys
from pathlib import Path

from transformers import AutoModelForSequenceClassification

from axformer.config import make_config
from axformer.data.reading import rows_of
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.opening import Inputs
from axformer.plan.trial import Trial
from axformer.run import PruningRun
from tests.tiny_families import tiny_family_model, tiny_family_tokenizer
from tests.tiny_models import tiny_rows

FAMILIES = ("albert", "bert", "distilbert", "gpt2", "llama", "modernbert")
RUNS: dict[str, tuple[str, dict[str, object]]] = {
    "paper": ("paper", {"attention_top_k": 3}),
    "published": ("published", {"attention_top_k": 3}),
    "robust": ("robust", {"safeguard": 2}),
    "trade": ("paper", {"tolerance": 0.2, "confirm": 0.3, "within_points": 20.0, "majority_fraction": 0.2}),
    "bisect": (
        "published",
        {
            **{"helped_reference": "current", "ties_help": False, "order": "random"},
            **{"neuron_search": "bisect", "majority_fraction": 0.1, "refine_margin": 1.5},
        },
    ),
}
"""By the name of a run: its preset, and the knobs that differ from it."""


def write_run(family: str, name: str, directory: Path) -> None:
    """Write the plan and the traces of one pass, undisturbed and resumed."""
    preset, knobs = RUNS[name]
    config = make_config(preset, {**knobs, "max_length": 24})
    model = tiny_family_model(family, AutoModelForSequenceClassification, num_labels=3)
    checkpoint = from_memory(model, tiny_family_tokenizer(family))
    rows = rows_of(tiny_rows(40, labels=3))
    run = PruningRun(Inputs(checkpoint, prepare(rows, checkpoint, config)), config)
    trials = list(run.trials())
    plan = run.plan.model_dump_json(indent=1)
    resumed = list(run.trials(replay=trials[: len(trials) // 2]))
    (directory / f"{family}-{name}.plan.json").write_text(plan)
    (directory / f"{family}-{name}.trace.jsonl").write_text(_lines(trials))
    (directory / f"{family}-{name}.resumed.jsonl").write_text(_lines(resumed))


def _lines(trials: list[Trial]) -> str:
    """A line a trial, with the fields that every version knows, and of the later ones those that are set."""
    later = {"plan", "milliseconds", "levels", "figures", "frequency"}
    return "".join(
        json.dumps(
            trial.model_dump(
                mode="json", exclude={"seconds"} | {name for name in later if getattr(trial, name) is None}
            )
        )
        + "\n"
        for trial in trials
    )


def main() -> None:
    """Write all runs into the directory that is named."""
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True)
    for family in FAMILIES:
        for name in RUNS:
            write_run(family, name, directory)
            sys.stderr.write(f"{family} {name}\n")


if __name__ == "__main__":
    main()
