"""The lottery ticket hypothesis on a fine-tuned model, and on the model that a pass leaves.

    python -m benchmarks.lottery --source ../shared/data [--only stsb-fine-tuned]

Each round removes the smallest of the projection weights that are left, over the whole encoder, puts the others back to where
the fine-tuning began, and trains them again (Frankle and Carbin, 2019; Figure 2 of the AxFormer paper, which names neither a
share nor a schedule). Zeros save neither time nor memory in any form, so this is a comparison and no method. A curve that
exists is not measured again.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import prune
from transformers import AutoTokenizer

from axformer.architectures.registry import architecture_of
from axformer.config import make_config
from axformer.data.source import DataSource
from axformer.model.compact import compact
from axformer.plan.plan import Plan
from axformer.run import PruningRun
from benchmarks.checkpoints import Checkpoint, checkpoint_named
from benchmarks.compress.tables import table
from benchmarks.finetune import BASE, BASES
from benchmarks.kept import chosen
from benchmarks.rows import read_rows
from benchmarks.running import Experiment, Place, run_command
from benchmarks.tasks.registry import task_named
from benchmarks.training import Recipe, fit

RESULTS = Path("benchmarks/results/lottery")
DOCUMENT = Path("docs/lottery.md")
FORMAT = "axformer-lottery/1"
ROUNDS = 4
SHARE = 0.4
"""Of the weights left, removed in a round; after four rounds 13 % are left."""
SETS = ("sst2",)
BEGINNINGS = {"fine-tuned": "the fine-tuned model", "axformer": "the AxFormer model"}

_TOLD = """Made by `python -m benchmarks.lottery`. Each round removes 40 % of the projection weights that are left in the
encoder, the smallest of all layers, puts the others back to their values before the fine-tuning, and trains as the checkpoint
was trained (Frankle and Carbin, 2019; Figure 2 of the AxFormer paper, which names neither a share nor a schedule). *The
AxFormer model* is what a pass with the preset `robust` leaves; its weights go back to the same values. One seed. Figures are of
held-out rows, in hundredths, with the share of the untouched encoder's projection weights that is left; column 0 is the model
before the first round.

Zeros that are spread over a matrix save neither time nor memory in any [form](forms.md), so a ticket is as large and as slow as
the model that it began with."""


@dataclass(frozen=True)
class Curve:
    """One beginning on one set."""

    data: str
    beginning: str

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.data}-{self.beginning}"

    @property
    def checkpoint(self) -> Checkpoint:
        """What is pruned."""
        return replace(checkpoint_named(self.data), family=BASE, name=f"{self.data}-{BASE}-s0")


CURVES = [Curve(data, beginning) for data in SETS for beginning in BEGINNINGS]


def projections(model: Any) -> list[nn.Linear]:
    """The linear layers of a model's encoder."""
    return [module for module in model.base_model.encoder.modules() if isinstance(module, nn.Linear)]


def weights_left(model: Any) -> int:
    """The number of projection weights that are not removed."""
    return sum(int(torch.count_nonzero(getattr(one, "weight_mask", one.weight))) for one in projections(model))


def remove_smallest(model: Any, share: float) -> None:
    """Remove a share of the projection weights that are left, the smallest over all layers; they stay zero in trainings."""
    prune.global_unstructured(
        [(one, "weight") for one in projections(model)], pruning_method=prune.L1Unstructured, amount=share
    )


def rewind(model: Any, start: Mapping[str, Tensor]) -> None:
    """Put all weights back to ``start``, by their names in an unpruned model; removed ones stay removed."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(start[name.removesuffix("_orig")])


def tickets(
    model: Any, start: Mapping[str, Tensor], train: Callable[[Any], None], rounds: int, share: float
) -> Iterator[Any]:
    """The model before the first round and after each."""
    yield model
    for _ in range(rounds):
        remove_smallest(model, share)
        rewind(model, start)
        train(model)
        yield model


def measure(curve: Curve, place: Place) -> dict[str, Any]:
    """One curve.

    Raises:
        CannotTrainError: its checkpoint cannot be trained.
    """
    started, checkpoint = time.monotonic(), curve.checkpoint
    trained, sets, threads = place.trained(checkpoint), place.sets, place.threads
    task, recipe = task_named(checkpoint.task), _recipe(checkpoint, threads, place.bfloat16)
    train_rows, test_rows = (read_rows(checkpoint.rows(sets, part), task.form) for part in ("train", "test"))
    model, begun = task.auto_class.from_pretrained(trained), _before_training(checkpoint, train_rows)
    whole = weights_left(begun)
    if curve.beginning == "axformer":
        plan, architecture = _found_by_a_pass(checkpoint, trained, sets), architecture_of(model.config.model_type)
        model, begun = (compact(one, architecture, plan) for one in (model, begun))
    start = {name: value.detach().clone() for name, value in begun.named_parameters()}
    tokenizer = AutoTokenizer.from_pretrained(trained)
    rounds: list[dict[str, Any]] = []
    for ticket in tickets(model, start, lambda it: fit(it, tokenizer, task, train_rows, recipe), ROUNDS, SHARE):
        figures = task.figures(ticket.eval(), tokenizer, test_rows, checkpoint.max_length)
        rounds.append({"left": weights_left(ticket) / whole, "figures": figures})
    metric = next(name for name in checkpoint.metrics if name in rounds[0]["figures"])
    about = {"format": FORMAT, "curve": curve.name, "data": curve.data, "beginning": curve.beginning, "metric": metric}
    return about | {"share": SHARE, "rounds": rounds, "seconds": time.monotonic() - started, "threads": threads}


def _found_by_a_pass(checkpoint: Checkpoint, trained: Path, sets: Path) -> Plan:
    knobs = {"max_length": checkpoint.max_length, "task_name": checkpoint.task_name}
    validation = DataSource(str(checkpoint.rows(sets, "validation")))
    run = PruningRun.open(trained, validation, config=make_config("robust", knobs))
    list(run.trials())
    return run.plan


def _recipe(checkpoint: Checkpoint, threads: int, bfloat16: bool) -> Recipe:
    return Recipe(
        checkpoint.epochs,
        checkpoint.seed,
        checkpoint.max_length,
        learning_rate=BASES[BASE].learning_rate,
        threads=threads,
        bfloat16=bfloat16,
    )


def _before_training(checkpoint: Checkpoint, rows: Sequence[Any]) -> Any:
    """The packaged model with the head that the checkpoint's training began with."""
    task = task_named(checkpoint.task)
    torch.manual_seed(checkpoint.seed)
    return task.auto_class.from_pretrained(BASES[BASE].home(), **task.head(rows))


def read_curves(results: Path) -> list[Mapping[str, Any]]:
    """The existing curves, in the order of their names."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(results.glob("*.json"))]


def document_of(found: Sequence[Mapping[str, Any]]) -> str:
    """Write the document from curves."""
    rows = []
    missing = "" if len(found) == len(CURVES) else f"**{len(found)} of {len(CURVES)} curves are measured.**\n\n"
    for one in found:
        cells = [f"{100 * each['figures'][one['metric']]:.2f} ({each['left']:.0%})" for each in one["rounds"]]
        rows.append([one["data"], BEGINNINGS[one["beginning"]], one["metric"], *cells])
    heads = ["set", "beginning", "metric", *(str(number) for number in range(ROUNDS + 1))]
    return "\n".join(["# Lottery tickets", "", f"{missing}{_TOLD}", *(["", *table(heads, rows)] if rows else []), ""])


def _write(results: Path, output: Path) -> None:
    output.write_text(document_of(read_curves(results)), encoding="utf-8")


if __name__ == "__main__":
    run_command(Experiment(partial(chosen, CURVES), measure, RESULTS, DOCUMENT, _write))
