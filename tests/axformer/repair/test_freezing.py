"""What is frozen keeps its weights, and everything else learns, in every family."""

import pytest
import torch

import axformer.auto  # noqa: F401 - some heads build their base model by its configuration
from axformer.errors import ConfigError
from axformer.model.compact import compact
from axformer.plan.plan import Plan
from axformer.repair.finetune import Lesson, finetune
from axformer.repair.freezing import check_freezes, embeddings, frozen
from axformer.repair.teacher import TaskLoss
from axformer.wire.finetuning import make_settings
from tests.family_cases import Case, all_cases, checkpoint_of, data_of

CASES = [case for case in all_cases() if case.task == "classification"]
SHARED = Case("albert", "classification")


@pytest.mark.parametrize("case", [case for case in CASES if case != SHARED], ids=str)
def test_frozen_layers_and_embeddings_stay_and_the_others_learn(case: Case) -> None:
    checkpoint, data = checkpoint_of(case), data_of(case)
    plan, architecture = Plan.full(checkpoint.dimensions), checkpoint.architecture
    settings = make_settings({"freeze": "lower:2", "learning_rate": 1e-2, "batch_size": 5})
    same = make_settings({"freeze": [1, 0], "freeze_embeddings": True})
    assert settings.frozen_layers() == same.frozen_layers() == (0, 1)
    assert settings.freezes_embeddings
    assert same.freezes_embeddings
    assert not make_settings({"freeze": [1, 0]}).freezes_embeddings
    check_freezes(checkpoint.model, architecture, settings)
    model = compact(checkpoint.model, architecture, plan)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    with frozen(model, architecture, plan, settings):
        finetune(model, checkpoint.tokenizer, Lesson(data.samples.encoded, TaskLoss(checkpoint.task), settings))
    kept = {id(weight) for layer in architecture.layers(model)[:2] for weight in layer.parameters()}
    kept |= {id(weight) for module in embeddings(model) for weight in module.parameters()}
    words = model.get_input_embeddings().weight
    assert id(words) in kept
    for name, weight in model.named_parameters():
        assert weight.requires_grad, name
        if id(weight) in kept:
            assert torch.equal(weight, before[name]), name
    learned = [name for name, weight in model.named_parameters() if not torch.equal(weight, before[name])]
    for layer in (2, 3):
        own = {id(weight) for weight in architecture.layers(model)[layer].parameters()}
        assert any(id(weight) in own for name, weight in model.named_parameters() if name in learned)


def test_positions_are_embeddings_too() -> None:
    model = checkpoint_of(Case("gpt2", "classification")).model
    assert embeddings(model) == [model.transformer.wte, model.transformer.wpe]
    model = checkpoint_of(Case("bert", "classification")).model
    assert embeddings(model) == [model.bert.embeddings]


def test_layers_that_do_not_exist_or_share_their_weights_are_refused() -> None:
    bert, albert = checkpoint_of(Case("bert", "classification")), checkpoint_of(SHARED)
    with pytest.raises(ConfigError, match="the model has 4 layers, numbered from 0 to 3"):
        check_freezes(bert.model, bert.architecture, make_settings({"freeze": "4"}))
    check_freezes(bert.model, bert.architecture, make_settings({"freeze": "lower:4"}))
    with pytest.raises(ConfigError, match="layers of models of type 'albert' share their weights"):
        check_freezes(albert.model, albert.architecture, make_settings({"freeze": "lower:1"}))
    check_freezes(albert.model, albert.architecture, make_settings({"freeze_embeddings": True}))
