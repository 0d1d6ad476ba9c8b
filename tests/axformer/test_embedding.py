"""Sentence embedders: read, made smaller without a label, and written as what sentence-transformers loads."""

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel

import axformer.auto
from axformer.architectures.embedder import SPEC, VECTOR, Embedding
from axformer.architectures.registry import ARCHITECTURES, architecture_of
from axformer.config import make_config
from axformer.data.columns import OWN_ANSWERS
from axformer.data.reading import rows_of
from axformer.errors import CheckpointError, ConfigError, DataError
from axformer.forms.stock import load as load_stock
from axformer.intake.checkpoint import Checkpoint, from_memory, load_checkpoint
from axformer.intake.dataset import prepare
from axformer.model.compact import compact
from axformer.model.masking import masked
from axformer.plan.plan import Plan
from axformer.run import PruningRun
from axformer.scores.measured import measure
from axformer.tasks.embedding import SentenceEmbedding
from axformer.tasks.neighbours import Search, gains, overlap
from axformer.wire.run import read_run
from tests.family_cases import some_plan
from tests.plain import PlainEvaluator
from tests.tiny_families import DIMENSIONS, tiny_family_config, tiny_family_tokenizer
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows

MODES = ("mean", "cls", "max", "lasttoken", "weightedmean", "mean_sqrt_len_tokens")
TEXTS = [row["text"] for row in tiny_rows(60)]
CONFIG = make_config("smallest", {"max_length": 24, "calibrate_rows": 30})
families = pytest.mark.parametrize("family", sorted(ARCHITECTURES))


def embedder(family: str, **spec: Any) -> Any:
    """A tiny embedder with random weights."""
    config = tiny_family_config(family)
    setattr(config, SPEC, Embedding.model_validate({"pooling": ("mean",), **spec}).model_dump())
    torch.manual_seed(0)
    return architecture_of(family).embedder.model_class(config).eval()


def checkpoint_of(family: str, **spec: Any) -> Checkpoint:
    return from_memory(embedder(family, **spec), tiny_family_tokenizer(family))


def vectors_of(model: Any, checkpoint: Checkpoint, texts: list[str]) -> torch.Tensor:
    with torch.inference_mode():
        return model(**checkpoint.tokenizer(texts, padding=True, return_tensors="pt"))[VECTOR]


@families
def test_vectors_are_the_same_masked_and_removed_and_in_any_batch(family: str) -> None:
    mode = MODES[sorted(ARCHITECTURES).index(family) % len(MODES)]
    checkpoint = checkpoint_of(family, pooling=(mode, "mean"), normalize=True)
    data = prepare(rows_of([{"text": text} for text in TEXTS[:20]]), checkpoint, CONFIG)
    assert data.samples.encoded.labels_as == OWN_ANSWERS
    for plan in (Plan.full(DIMENSIONS), some_plan(1)):
        small = compact(checkpoint.model, checkpoint.architecture, plan)
        removed = torch.stack(list(measure(small, checkpoint.task, data.samples).answers))
        with masked(checkpoint.model, checkpoint.architecture, plan):
            alone = [vectors_of(checkpoint.model, checkpoint, [text])[0] for text in TEXTS[:20]]
        torch.testing.assert_close(removed, torch.stack(alone), rtol=1e-4, atol=1e-5)
        plain = PlainEvaluator(checkpoint.model, checkpoint.architecture, checkpoint.task, data.samples)
        torch.testing.assert_close(
            measure(small, checkpoint.task, data.samples).losses, plain.losses(plan), rtol=1e-4, atol=1e-5
        )
