"""The checkpoints whose results are reported: which family learned which task from which set.

The order is that of their worth, so that whatever time there is gives the most.
"""

from dataclasses import dataclass
from pathlib import Path

from axformer.config import TaskName
from benchmarks.finetune import BASE, BASES
from benchmarks.from_scratch import RECIPE

_TOPIC_EPOCHS = RECIPE.epochs
_TOPIC_LENGTH = RECIPE.max_length


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint, and how it is made."""

    name: str
    family: str
    """A family of ``benchmarks/families.py``, trained from random weights; or a packaged model of ``benchmarks/finetune.py``,
    fine-tuned."""
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
    task_name: TaskName | None = None
    """What the set asks for in the words of Table VII of the paper, whose order of inspection a pass then takes; null where the
    table has no such task."""

    @property
    def is_packaged(self) -> bool:
        """Whether it begins with the weights of a packaged model."""
        return self.family in BASES

    def rows(self, sets: Path, part: str) -> Path:
        """The file of one part of its set."""
        return sets / self.data / f"{part}.jsonl"


def _topics(family: str) -> Checkpoint:
    return Checkpoint(family, family, "classification", "ag-news", _ACCURACY, _TOPIC_EPOCHS, _TOPIC_LENGTH)


_ACCURACY = ("accuracy",)
_MATTHEWS = ("matthews_correlation", "matthews")
_F1 = ("f1", "f1_micro")
_EXACT_MATCH = ("exact_match",)
"""What the paper scores SQuAD by (Table I)."""
_PERPLEXITY = ("perplexity",)

CHECKPOINTS = (
    *map(_topics, ("distilbert", "modernbert", "deberta-v2", "llama", "gpt2", "mpnet", "albert", "xlnet")),
    Checkpoint("cola", BASE, "classification", "cola", _MATTHEWS, task_name="linguistic_acceptability"),
    Checkpoint("sst2", BASE, "classification", "sst2", _ACCURACY, task_name="sentiment_analysis"),
    Checkpoint("conll2000", BASE, "tagging", "conll2000", _F1, epochs=2),
    Checkpoint(
        "squad",
        BASE,
        "question-answering",
        "squad",
        _EXACT_MATCH,
        epochs=2,
        max_length=256,
        task_name="reading_comprehension",
    ),
    Checkpoint("stsb", BASE, "regression", "stsb", ("pearson",), epochs=4, task_name="sentence_similarity"),
    Checkpoint(
        "squad-sentences",
        BASE,
        "multiple-choice",
        "squad-sentences",
        _ACCURACY,
        epochs=2,
        task_name="reading_comprehension",
    ),
    Checkpoint("ud-kinds", BASE, "multi-label", "ud-kinds", _F1, epochs=2),
    Checkpoint("minilm-masked", BASE, "masked-lm", "ag-news-texts", _PERPLEXITY, epochs=1),
    Checkpoint("gpt2-causal", "gpt2", "causal-lm", "ag-news-texts", _PERPLEXITY, 5, _TOPIC_LENGTH),
    Checkpoint("rte", BASE, "classification", "rte", _ACCURACY, epochs=5, task_name="entailment"),
    Checkpoint("qnli", BASE, "classification", "qnli", _ACCURACY, task_name="question_answering"),
    *map(_topics, ("qwen3", "roberta", "electra")),
    Checkpoint("ud-upos", BASE, "tagging", "ud-upos", _ACCURACY, epochs=2),
    Checkpoint("sms", BASE, "classification", "sms", ("f1_macro",)),
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


def chosen(names: list[str] | None) -> list[Checkpoint]:
    """The checkpoints with these names, or all.

    Raises:
        ValueError: one is unknown.
    """
    return [checkpoint_named(name) for name in names] if names else list(CHECKPOINTS)
