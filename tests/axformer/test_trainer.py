"""A training with transformers' Trainer that ends with a pruned model."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Trainer, TrainingArguments

import axformer
from axformer.errors import ConfigError
from tests.tiny_models import tiny_config, tiny_model, tiny_rows, tiny_tokenizer

KNOBS = {"method": "compress", "confirm": 0.0, "within_points": None, "budgets": [0.5], "accept_poor_model": True}


class Rows(torch.utils.data.Dataset):
    """Encoded rows."""

    def __init__(self) -> None:
        tokenizer = tiny_tokenizer()
        self._rows = [tokenizer(row["text"]) | {"labels": row["label"]} for row in tiny_rows(16)]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> dict[str, object]:
        return dict(self._rows[place])


def train(directory: Path, callback: axformer.PruneCallback) -> Trainer:
    """Train for two steps."""
    arguments = TrainingArguments(
        str(directory), max_steps=2, per_device_train_batch_size=8, report_to=[], use_cpu=True
    )
    with torch.inference_mode(mode=False):
        trainer = Trainer(
            tiny_model(tiny_config(layers=1)),
            arguments,
            train_dataset=Rows(),
            processing_class=tiny_tokenizer(),
            callbacks=[callback],
        )
        trainer.train()
    return trainer


def test_a_training_ends_with_a_pruned_model_beside_it(tmp_path: Path) -> None:
    callback = axformer.PruneCallback(
        tiny_rows(30), test=tiny_rows(20, seed=1), forms=["compact"], preset="paper", **KNOBS
    )
    trainer = train(tmp_path, callback)
    assert callback.result is not None
    assert callback.result.report is not None
    told = trainer.state.log_history[-1]
    assert told["pruned/advice"] == callback.result.advice
    assert told["pruned/accuracy"] == callback.result.report["pruned"]["test"]["accuracy"]
    assert told["pruned/parameters"] < told["pruned/parameters_before"]
    weights = axformer.load(tmp_path / "pruned").state_dict()
    trained = trainer.model.state_dict()
    name = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(weights[name], trained[name]), "it is the trained model that was pruned"


@pytest.mark.parametrize(
    ("wish", "why"),
    [({"goal": "tiny"}, "goal"), ({"drop": 1, "method": "rank"}, "drop"), ({"forms": ["tiny"]}, "forms")],
)
def test_a_wish_that_cannot_be_is_refused_before_the_training(wish: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        axformer.PruneCallback(tiny_rows(30), **wish)
