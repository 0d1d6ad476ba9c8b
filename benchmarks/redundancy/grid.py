"""The cells: a model and a set that it is analyzed on.

As in the paper (Dalvi and others, 2020, appendix A.1), tagging reads the frozen *pre-trained* model, and tasks over whole texts
the model that was fine-tuned for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.checkpoints import Checkpoint, checkpoint_named
from benchmarks.finetune import BASE
from benchmarks.kept import chosen

MODELS = (BASE, "mpnet-base")
TAGGING, TEXTS = ("ud-upos", "conll2000"), ("sst2", "stsb")


@dataclass(frozen=True)
class Cell:
    """One model on one set."""

    checkpoint: Checkpoint
    is_pretrained: bool
    """Whether nothing is trained: the encoder of the packaged model, with a head that no report reads."""

    @property
    def name(self) -> str:
        """The name of the cell and of its file."""
        return f"{self.checkpoint.data}-{self.checkpoint.family}-{'pretrained' if self.is_pretrained else 'finetuned'}"


def cells(only: Sequence[str] = ()) -> list[Cell]:
    """The cells whose names match one of these patterns (``*-minilm-*``), or all, the small model first.

    Raises:
        ValueError: a pattern matches nothing.
    """
    everything = [
        Cell(replace(checkpoint_named(data), family=model, name=f"{data}-{model}-s0"), data in TAGGING)
        for model in MODELS
        for data in (*TAGGING, *TEXTS)
    ]
    return chosen(everything, only)
