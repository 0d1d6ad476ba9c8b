"""Scores of layers from weights and from inputs, on tiny models of every family."""

from itertools import pairwise
from typing import Any

import pytest
import torch

from axformer.architectures.registry import ARCHITECTURES, architecture_of
from axformer.errors import ConfigError
from axformer.methods.layers.scores import aggregation, contribution, variance
from axformer.model.masking import masked
from axformer.plan.plan import Plan
from tests.family_cases import Case, all_cases, checkpoint_of, data_of
from tests.tiny_families import DIMENSIONS

LAST = {
    "distilbert": "ffn.lin2.weight",
    "gpt2": "mlp.c_proj.weight",
    "llama": "mlp.down_proj.weight",
    "modernbert": "mlp.Wo.weight",
    "qwen3": "mlp.down_proj.weight",
    "xlnet": "ff.layer_2.weight",
}
"""The last projection of a layer by its name in transformers, where it is not BERT's."""
OWN_WEIGHTS = sorted(set(ARCHITECTURES) - {"albert"})
POOLED = [case for case in all_cases() if case.task in ("classification", "token_classification", "multiple_choice")]


@pytest.mark.parametrize("family", OWN_WEIGHTS)
def test_scores_of_weights_are_those_of_the_last_projection(family: str) -> None:
    checkpoint = checkpoint_of(Case(family, "classification"))
    parts = checkpoint.model, checkpoint.architecture
    sums, variances = aggregation(*parts), variance(*parts)
    assert len(sums) == len(variances) == DIMENSIONS.layers
    for index, layer in enumerate(checkpoint.architecture.layers(checkpoint.model)):
        weight = layer.get_parameter(LAST.get(family, "output.dense.weight")).detach().double()
        assert sums[index] == pytest.approx(float(weight.abs().sum()))
        assert variances[index] == pytest.approx(float(weight.square().mean() - weight.mean() ** 2))


def test_shared_weights_do_not_rank_layers() -> None:
    checkpoint = checkpoint_of(Case("albert", "classification"))
    for score in (aggregation, variance):
        with pytest.raises(ConfigError, match="layers of albert share their weights"):
            score(checkpoint.model, checkpoint.architecture)


@pytest.mark.parametrize("case", POOLED, ids=str)
def test_contribution_is_the_cosine_of_hidden_states(case: Case) -> None:
    """Against the hidden states that transformers returns; the last one of pre-LN families is behind their final norm."""
    checkpoint, samples = checkpoint_of(case), data_of(case).samples
    scores = contribution(checkpoint.model, checkpoint.architecture, samples)
    expected, rows = torch.zeros(DIMENSIONS.layers - 1), 0
    for batch in samples.batches:
        inputs = {name: values.flatten(end_dim=-2) for name, values in batch.inputs.items()}
        with torch.inference_mode():
            states = checkpoint.model.base_model(**inputs, output_hidden_states=True).hidden_states
        pairs = pairwise(states[:-1])
        expected += torch.stack([_cosines(pair, case, inputs) for pair in pairs]).sum(dim=1)
        rows += len(inputs["input_ids"])
    seen = slice(1 if case.family == "deberta-v2" else 0, -1)  # a convolution is between its layers 0 and 1
    torch.testing.assert_close(torch.tensor(scores)[seen], (expected / rows)[seen.start :], rtol=1e-5, atol=1e-5)


def _cosines(pair: tuple[torch.Tensor, torch.Tensor], case: Case, inputs: dict[str, Any]) -> torch.Tensor:
    """Of each sequence, shape (sequences,)."""
    architecture, checkpoint = architecture_of(case.family), checkpoint_of(case)
    similar = torch.nn.functional.cosine_similarity(*pair, dim=-1)
    real = inputs["attention_mask"]
    if case.family == "modernbert" and case.task == "multiple_choice":
        return similar.gather(1, real.argmax(dim=1, keepdim=True))[:, 0]
    places = architecture.read_position(checkpoint.model.config, inputs["input_ids"])
    if places is None:
        return (similar * real).sum(dim=1) / real.sum(dim=1)
    return similar.gather(1, places[:, None])[:, 0]


def test_a_layer_that_is_gone_changes_nothing() -> None:
    checkpoint, samples = checkpoint_of(Case("bert", "classification")), data_of(Case("bert", "classification")).samples
    with masked(checkpoint.model, checkpoint.architecture, Plan.full(DIMENSIONS).dropping((2,))):
        scores = contribution(checkpoint.model, checkpoint.architecture, samples)
    assert scores[2] == pytest.approx(1.0)
    assert all(score < 1 for index, score in enumerate(scores) if index != 2)
