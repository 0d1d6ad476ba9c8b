"""A model in memory is taken only if its result, which is built from configuration and weights, can compute the same."""

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from types import MethodType
from typing import Any

import pytest
import torch
from torch import nn
from transformers import BertForSequenceClassification

import axformer
from axformer.architectures.registry import ARCHITECTURES
from axformer.config import PassConfig
from axformer.errors import CheckpointError
from axformer.intake.checkpoint import from_memory
from axformer.intake.rebuilt import check_rebuilt
from tests.family_cases import Case, all_cases, checkpoint_of, data_of
from tests.tiny_models import tiny_config, tiny_model, tiny_rows, tiny_tokenizer

CONFIG = PassConfig(attention_top_k=None, accept_poor_model=True)


class Inverted(BertForSequenceClassification):
    def forward(self, *arguments: Any, **named: Any) -> Any:
        output = super().forward(*arguments, **named)
        output.logits = -output.logits
        return output


class Renamed(BertForSequenceClassification):
    """As its parent in all that counts."""

    def forward(self, *arguments: Any, **named: Any) -> Any:
        return super().forward(*arguments, **named)


def inverted(_: Any, __: Any, output: Any) -> Any:
    output.logits = -output.logits
    return output


def put(name: str, value: Any) -> Callable[[Any], Any]:
    """A function that puts something in the place of a model's attribute."""

    def change(model: Any) -> Any:
        *path, own = name.split(".")
        setattr(reduce(getattr, path, model), own, value)
        return model

    return change


def hooked(model: Any) -> Any:
    model.register_forward_hook(inverted)
    return model


def autocast(model: Any) -> Any:
    """What Accelerate leaves behind a training in bfloat16."""
    forward = model.forward

    def computed(self: Any, *arguments: Any, **named: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return type(self).forward(self, *arguments, **named)

    model._original_forward, model.forward = forward, MethodType(computed, model)
    return model


def prune(model: Any) -> Any:
    return axformer.prune(model, tiny_tokenizer(), tiny_rows(20), CONFIG)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("classifier", nn.Sequential(nn.Linear(32, 32), nn.Linear(32, 2))), "other weights: classifier.0.bias"),
        (put("bert.encoder.layer", tiny_model().bert.encoder.layer[:1]), "set model.config.num_hidden_layers"),
        (put("bert.pooler.activation", nn.ReLU()), "computes something else than a BertForSequenceClassification"),
        (hooked, "its logits differ by"),
        (lambda model: put("bert", model.bert)(Inverted(model.config)), "its logits differ by"),
    ],
)  # fmt: skip
def test_a_model_that_its_configuration_does_not_describe_is_refused(change: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        prune(change(tiny_model(tiny_config(layers=2))))


@pytest.mark.parametrize(
    "change",
    [
        put("config.return_dict", False),
        put("config.output_hidden_states", True),
        lambda model: put("bert", model.bert)(Renamed(model.config)),
    ],
)
def test_what_leaves_the_logits_alone_is_taken(change: Callable[[Any], Any]) -> None:
    model = tiny_model(tiny_config(layers=1))
    model.config._attn_implementation = "eager"
    assert prune(change(model)).trace[0].loss > 0


def test_the_result_of_a_class_of_ones_own_loads(tmp_path: Path) -> None:
    model = tiny_model(tiny_config(layers=1))
    small = prune(put("bert", model.bert)(Renamed(model.config))).model
    small.save_pretrained(tmp_path)
    assert type(axformer.load(tmp_path)).__name__ == "CompactBertForSequenceClassification"


def test_a_model_that_was_trained_in_16_bits_computes_in_its_own() -> None:
    plain = tiny_model(tiny_config(layers=1))
    expected = prune(plain).trace[0].loss
    assert prune(autocast(plain)).trace[0].loss == expected


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_models_of_every_family_and_task_are_what_they_are_built_from(case: Case) -> None:
    check_rebuilt(checkpoint_of(case), data_of(case))


def test_every_family_is_tried() -> None:
    assert {case.family for case in all_cases()} == set(ARCHITECTURES)


def test_weights_that_are_shared_by_hand_are_those_of_the_configuration() -> None:
    model = tiny_model(tiny_config(layers=1))
    model.bert.encoder.layer[0].attention.self.key.weight = model.bert.encoder.layer[0].attention.self.query.weight
    assert from_memory(model, tiny_tokenizer()).bytes > 0
