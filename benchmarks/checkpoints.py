"""The checkpoints whose results are reported: which packaged model learned which task from which set, and how one is made.

Each is trained in a process of its own, whose output lies beside it, so that one failure stops no other.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.finetune import BASE, BASES, finetune
from benchmarks.rows import read_rows
from benchmarks.tasks.registry import task_named
from benchmarks.training import Recipe


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint, and how it is made."""

    name: str
    family: str
    """A packaged model of ``benchmarks/finetune.py``."""
    task: str
    """A task of ``benchmarks/tasks``."""
    data: str
    """A set of ``benchmarks/sets``."""
    metrics: tuple[str, ...]
    """The task's usual metric, by any of the names that reports give it."""
    epochs: int = 3
    max_length: int = 128
    """Tokens; for training, measuring and the pass."""
    seed: int = 0
    """Of the training: of a new head's weights, and of the order of the rows."""
    task_name: str | None = None
    """What the set asks for in the words of Table VII of the paper, whose order of inspection a pass then takes; null where the
    table has no such task."""

    @property
    def recipe(self) -> Recipe:
        """How it is trained, on two threads in float32."""
        return Recipe(self.epochs, self.seed, self.max_length, learning_rate=BASES[self.family].learning_rate)

    def rows(self, sets: Path, part: str) -> Path:
        """The file of one part of its set."""
        return sets / self.data / f"{part}.jsonl"

    def seeded(self, seed: int, family: str | None = None) -> "Checkpoint":
        """The same with another seed, perhaps of another family, under the name that cells give it."""
        model = family or self.family
        return replace(self, name=f"{self.data}-{model}-s{seed}", family=model, seed=seed)


_ACCURACY = ("accuracy",)
_MATTHEWS = ("matthews_correlation", "matthews")
_F1 = ("f1", "f1_micro")
_EXACT = ("exact_match",)

CHECKPOINTS = (
    Checkpoint("cola", BASE, "classification", "cola", _MATTHEWS, task_name="linguistic_acceptability"),
    Checkpoint("sst2", BASE, "classification", "sst2", _ACCURACY, task_name="sentiment_analysis"),
    Checkpoint("conll2000", BASE, "tagging", "conll2000", _F1, epochs=2),
    Checkpoint("squad", BASE, "question-answering", "squad", _EXACT, 2, 256, task_name="reading_comprehension"),
    Checkpoint("stsb", BASE, "regression", "stsb", ("pearson",), epochs=4, task_name="sentence_similarity"),
    Checkpoint("rte", BASE, "classification", "rte", _ACCURACY, epochs=5, task_name="entailment"),
    Checkpoint("wnli", BASE, "classification", "wnli", _ACCURACY),
    Checkpoint("ud-upos", BASE, "tagging", "ud-upos", _ACCURACY, epochs=2),
    Checkpoint("sms", BASE, "classification", "sms", ("f1_macro",)),
    Checkpoint("phrases", BASE, "multi-label", "phrases", ("f1_micro",)),
    Checkpoint("ag-news", BASE, "classification", "ag-news", _ACCURACY),
    Checkpoint("passages", BASE, "reranking", "passages", ("ndcg_10",), epochs=2, max_length=192),
)


def checkpoint_named(name: str) -> Checkpoint:
    """The checkpoint with this name.

    Raises:
        ValueError: there is none.
    """
    for checkpoint in CHECKPOINTS:
        if checkpoint.name == name:
            return checkpoint
    raise ValueError(f"checkpoint '{name}' is unknown; there are {', '.join(one.name for one in CHECKPOINTS)}")


def run_logged(arguments: Sequence[str], log: Path) -> bool:
    """Run this Python with ``arguments`` and add what it prints to ``log``; gives whether it succeeded."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as output:
        print("$", "python", *arguments, file=output, flush=True)
        done = subprocess.run([sys.executable, *arguments], stdout=output, stderr=subprocess.STDOUT, check=False)
    return done.returncode == 0


def make(checkpoint: Checkpoint, sets: Path, output: Path, threads: int, bfloat16: bool, device: str) -> bool:
    """Train a checkpoint, if that was not done before; gives whether it stands now.

    Leaves ``OUTPUT/NAME``, and beside it ``NAME.log``.
    """
    if (output / checkpoint.name).is_dir():
        return True
    how = {"threads": threads, "bfloat16": bfloat16, "device": device}
    told = json.dumps({"checkpoint": asdict(checkpoint), "how": how})
    return run_logged(["-m", "benchmarks.checkpoints", told, str(sets), str(output)], output / f"{checkpoint.name}.log")


def _make_here(told: str, sets: Path, output: Path) -> None:
    """What :func:`make` asks of a process."""
    asked = json.loads(told)
    checkpoint = Checkpoint(**asked["checkpoint"])
    partial = output / f"{checkpoint.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    _train(checkpoint, sets, partial, asked["how"])
    partial.rename(output / checkpoint.name)


def _train(checkpoint: Checkpoint, sets: Path, output: Path, how: Mapping[str, Any]) -> None:
    task = task_named(checkpoint.task)
    rows = read_rows(checkpoint.rows(sets, "train"), task.form)
    recipe = replace(checkpoint.recipe, **how)
    finetune(BASES[checkpoint.family].home(), task, rows, output, recipe)


if __name__ == "__main__":
    _make_here(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
