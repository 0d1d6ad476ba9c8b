"""Every family with every task that transformers has a head for: a tiny real model, and data for it."""

import random
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from axformer.architectures.registry import ARCHITECTURES
from axformer.config import PassConfig
from axformer.data.reading import rows_of
from axformer.intake.checkpoint import Checkpoint, from_memory
from axformer.intake.dataset import DataSet, prepare
from axformer.plan.elements import Dimensions
from axformer.plan.plan import LayerPlan, Plan
from tests.tiny_families import DIMENSIONS, tiny_family_model, tiny_family_tokenizer
from tests.tiny_models import choice_rows, multi_label_rows, question_rows, tagged_rows, tiny_rows

LABELS = 3
ROWS = 10
SETTINGS = {
    "classification": (AutoModelForSequenceClassification, {"num_labels": LABELS}, tiny_rows(ROWS, labels=LABELS)),
    "multi_label_classification": (
        AutoModelForSequenceClassification,
        {"num_labels": LABELS, "problem_type": "multi_label_classification"},
        multi_label_rows(ROWS, labels=LABELS),
    ),
    "regression": (AutoModelForSequenceClassification, {"num_labels": 1}, tiny_rows(ROWS, labels=1, pairs=True)),
    "token_classification": (
        AutoModelForTokenClassification,
        {"num_labels": LABELS},
        tagged_rows(ROWS, ["LABEL_0", "LABEL_1", "LABEL_2"]),
    ),
    "question_answering": (AutoModelForQuestionAnswering, {}, question_rows(ROWS)),
    "multiple_choice": (AutoModelForMultipleChoice, {}, choice_rows(ROWS)),
    "masked_lm": (AutoModelForMaskedLM, {}, tiny_rows(ROWS)),
    "causal_lm": (AutoModelForCausalLM, {}, [row | {"text": f"word0 word1 {row['text']}"} for row in tiny_rows(ROWS)]),
}
"""For each task: the Auto class of its head, what the configuration says, and the data."""
CONFIG = PassConfig(batch_tokens=80, max_length=24)
"""Several batches, and questions in several windows."""
LONG = {"question_answering": 240, "multiple_choice": 240}
"""Tokens of a batch where a row is several texts, so that there are not more than three batches."""


@dataclass(frozen=True)
class Case:
    """One family with one task."""

    family: str
    task: str

    def __str__(self) -> str:
        return f"{self.family}-{self.task}"


def all_cases() -> list[Case]:
    """Every family with every task that it has a head for."""
    return [
        Case(family, task)
        for family, architecture in sorted(ARCHITECTURES.items())
        for task, (auto_class, _, _) in SETTINGS.items()
        if auto_class in {head.auto_class for head in architecture.heads}
    ]


def stock_model(case: Case) -> Any:
    """The model as its user has it."""
    auto_class, changes, _ = SETTINGS[case.task]
    return tiny_family_model(case.family, auto_class, **changes)


def batching_of(case: Case) -> PassConfig:
    """How the data of a case comes in batches."""
    return CONFIG.model_copy(update={"batch_tokens": LONG.get(case.task, CONFIG.batch_tokens)})


@cache
def checkpoint_of(case: Case) -> Checkpoint:
    """The model as a pass has it."""
    with torch.inference_mode(mode=False):
        return from_memory(stock_model(case), tiny_family_tokenizer(case.family))


@cache
def data_of(case: Case) -> DataSet:
    """Data for it, fit for derivatives also where a test without them asks for it first."""
    with torch.inference_mode(mode=False):
        return prepare(rows_of(SETTINGS[case.task][2]), checkpoint_of(case), batching_of(case))


def some_plan(seed: int, dimensions: Dimensions = DIMENSIONS) -> Plan:
    """A plan in which removed and emptied blocks, cut ones and hard attention all occur."""
    chance = random.Random(seed)
    return Plan(layers=tuple(_some_layer(chance, dimensions) for _ in range(dimensions.layers)))


def _some_layer(chance: random.Random, dimensions: Dimensions) -> LayerPlan:
    attention, ffn = chance.random() < 0.8, chance.random() < 0.8
    heads = sorted(chance.sample(range(dimensions.heads), chance.randint(0, dimensions.heads)))
    cuts = sorted(chance.sample(range(dimensions.intermediate_size + 1), chance.choice([0, 2, 4])))
    return LayerPlan(
        attention=attention,
        heads=tuple(heads) if attention else (),
        ffn=ffn,
        neurons=tuple(zip(cuts[::2], cuts[1::2], strict=True)) if ffn else (),
        hard_attention=chance.choice([None, 3, 8]) if attention else None,
    )
