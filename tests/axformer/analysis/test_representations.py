"""Representations are the model's own hidden states, for every family and task, whatever the batches."""

from pathlib import Path

import numpy as np
import pytest
import torch

from axformer.analysis.positions import EveryToken, LastSubwords, ReadPositions, positions_of
from axformer.analysis.representations import Representations, represent
from axformer.config import PassConfig
from axformer.data.encoding import UNLABELLED
from axformer.intake.dataset import DataSet, prepare
from axformer.model.tail import read_positions
from axformer.wire.steps import Counter, StepName
from tests.family_cases import CONFIG, Case, all_cases, checkpoint_of, data_of, stock_model

CASES = all_cases()


def represented(case: Case, data: DataSet, directory: Path) -> Representations:
    positions = positions_of(checkpoint_of(case), data, CONFIG)
    counter = Counter(StepName.REPRESENTING, len(data.samples.batches))
    return represent(checkpoint_of(case), data, positions, directory / f"{len(data.samples.batches)}.npy", counter)


@torch.inference_mode()
def expected(case: Case, data: DataSet) -> np.ndarray:
    """What transformers calls the hidden states of the model as its user has it, read row by row."""
    checkpoint, rows = checkpoint_of(case), {}
    positions = positions_of(checkpoint, data, CONFIG)
    for batch in data.samples.batches:
        inputs = {name: values.flatten(end_dim=-2) for name, values in batch.inputs.items()}
        states = torch.stack(stock_model(case).base_model(**inputs, output_hidden_states=True).hidden_states)
        choices = states.shape[1] // len(batch.rows)
        for index, row in enumerate(batch.rows.tolist()):
            own = states[:, index * choices : (index + 1) * choices]
            match positions:
                case ReadPositions():
                    read = read_positions(checkpoint.model, checkpoint.architecture, batch)
                    assert read is not None
                    tokens = read.tokens[index * choices : (index + 1) * choices]
                    rows[row] = own[:, torch.arange(choices), tokens]
                case LastSubwords():
                    start = int(batch.starts()[index])
                    rows[row] = own[:, 0, [start + place for place in positions.places[row]]]
                case EveryToken():
                    real = inputs["attention_mask"][index] * (inputs["input_ids"][index] > 4)  # 0 to 4 are special
                    rows[row] = own[:, 0, real.bool()]
    return torch.cat([rows[row] for row in sorted(rows)], dim=1).numpy()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_they_are_the_models_own_hidden_states(case: Case, tmp_path: Path) -> None:
    data = data_of(case)
    found = represented(case, data, tmp_path)
    wanted = expected(case, data)
    assert found.states.dtype == np.float16
    assert found.states.shape == wanted.shape
    assert np.abs(found.states - wanted).max() <= 2e-3 * max(1.0, float(np.abs(wanted).max()))


@pytest.mark.parametrize(
    "case",
    [
        Case("bert", "token_classification"),
        Case("bert", "question_answering"),
        Case("xlnet", "classification"),
        Case("gpt2", "causal_lm"),
    ],
    ids=str,
)
def test_batches_change_nothing_beyond_rounding(case: Case, tmp_path: Path) -> None:
    data = data_of(case)
    alone = prepare(data.rows, checkpoint_of(case), PassConfig(**{**CONFIG.model_dump(), "batch_tokens": 1}))
    one, other = (represented(case, some, tmp_path) for some in (data, alone))
    assert len(alone.samples.batches) > len(data.samples.batches)
    assert one.counts == other.counts
    assert np.abs(one.states.astype(float) - other.states).max() <= 4e-3 * max(1.0, float(np.abs(one.states).max()))


def test_a_tagged_word_is_read_at_its_last_subword() -> None:
    case = Case("bert", "token_classification")
    checkpoint, data = checkpoint_of(case), data_of(case)
    positions = positions_of(checkpoint, data, CONFIG)
    assert isinstance(positions, LastSubwords)
    for row, labels in enumerate(data.samples.encoded.labels):
        tagged = [place for place, label in enumerate(labels) if label != UNLABELLED]
        assert len(positions.places[row]) == len(tagged)
        following = [*tagged[1:], len(labels) - 1]
        for place, first, after in zip(positions.places[row], tagged, following, strict=True):
            assert first <= place < after or place == after - 1


def test_columns_are_those_of_the_states(tmp_path: Path) -> None:
    case = Case("bert", "classification")
    found = represented(case, data_of(case), tmp_path)
    wide = np.concatenate([found.state(layer) for layer in range(found.layers + 1)], axis=1)
    chosen = np.random.default_rng(0).permutation(found.dimensions)[:50]
    assert np.array_equal(found.columns(chosen), wide[:, chosen])
    streamed = np.concatenate(list(found.chunks(1, np.array([1, 4, 7]))))
    assert np.array_equal(streamed, found.state(1)[[1, 4, 7]])
