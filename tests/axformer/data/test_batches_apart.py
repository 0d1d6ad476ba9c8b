"""What a model answers to a row does not depend on the other rows of its batch, for every family and every head."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from axformer.config import PassConfig
from axformer.data.batches import batched
from axformer.data.reading import rows_of
from axformer.errors import DataError
from axformer.intake.checkpoint import Checkpoint, from_memory
from axformer.intake.dataset import prepare
from axformer.notes import notes_on
from tests.family_cases import SETTINGS, Case, all_cases, stock_model
from tests.tiny_families import tiny_family_config, tiny_family_tokenizer
from tests.tiny_models import WORDS, tiny_rows, tiny_tokenizer

CONFIG = PassConfig(batch_tokens=200, max_length=24)
LONGROPE = {
    **{"rope_type": "longrope", "rope_theta": 200.0, "original_max_position_embeddings": 16, "factor": 4.0},
    **{"short_factor": [1.0] * 4, "long_factor": [3.0] * 4},
}
LENGTHS = (3, 40, 14, 15, 30, 9, 60, 2)


def check_rows_alone(checkpoint: Checkpoint, rows: list[dict[str, object]], config: PassConfig) -> None:
    """Losses in batches are those of rows one at a time."""
    data = prepare(rows_of(rows), checkpoint, config)
    encoded = data.samples.encoded
    one = replace(encoded, padding=replace(encoded.padding, alone=True))
    alone = batched(one, checkpoint.tokenizer, batch_tokens=1, device="cpu")
    found, expected = (losses(checkpoint, samples) for samples in (data.samples, alone))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def losses(checkpoint: Checkpoint, samples: Any) -> torch.Tensor:
    found = torch.zeros(len(samples.lengths))
    for batch in samples.batches:
        found[batch.rows] = checkpoint.task.losses(checkpoint.model(**batch.inputs), batch)
    return found


@pytest.mark.parametrize("case", [case for case in all_cases() if case.task != "masked_lm"], ids=str)
def test_rows_are_read_alone_whatever_side_the_tokenizer_names(case: Case) -> None:
    for side in ("left", "right"):
        tokenizer = tiny_family_tokenizer(case.family)
        tokenizer.padding_side = side
        check_rows_alone(from_memory(stock_model(case), tokenizer), SETTINGS[case.task][2], CONFIG)
        assert tokenizer.padding_side == side, "the user's own stays as it is"


@pytest.mark.parametrize("summary", ["last", "first", "mean", "cls_index"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_xlnet_is_padded_where_its_head_does_not_look(summary: str, side: str) -> None:
    checkpoint = classifier("xlnet", side, summary_type=summary)
    check_rows_alone(checkpoint, tiny_rows(20, labels=3), CONFIG)
    assert checkpoint.padding.alone == (summary == "mean")
    data = prepare(rows_of(tiny_rows(4)), checkpoint, CONFIG)
    said = notes_on(checkpoint, {"validation": data}, None, CONFIG, data, None)
    assert any("reads padding too" in note for note in said) == (summary == "mean")


def classifier(family: str, side: str = "right", **changes: Any) -> Checkpoint:
    torch.manual_seed(0)
    config = tiny_family_config(family, num_labels=3, **changes)
    return from_memory(AutoModelForSequenceClassification.from_config(config).eval(), tiny_tokenizer_on(side))


def tiny_tokenizer_on(side: str) -> Any:
    tokenizer = tiny_tokenizer()
    tokenizer.padding_side = side
    return tokenizer


def texts_of(lengths: tuple[int, ...]) -> list[dict[str, object]]:
    """Texts of so many tokens, two of which are the tokenizer's own."""
    words = [
        [WORDS[(7 * row + place) % len(WORDS)] for place in range(length - 2)] for row, length in enumerate(lengths)
    ]
    return [{"text": " ".join(text) or "word1", "label": row % 3} for row, text in enumerate(words)]


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_positions_that_the_longest_row_decides_are_counted_apart(family: str) -> None:
    checkpoint = classifier(family, rope_parameters=dict(LONGROPE))
    config = PassConfig(batch_tokens=1000)
    check_rows_alone(checkpoint, texts_of(LENGTHS), config)
    data = prepare(rows_of(texts_of(LENGTHS)), checkpoint, config)
    assert [batch.tokens > 16 for batch in data.samples.batches] == [False, True]
    assert any(
        "3 rows have more than 16 tokens" in note
        for note in notes_on(checkpoint, {"validation": data}, None, config, data, None)
    )
    alike = prepare(rows_of(texts_of((20, 30))), checkpoint, config)
    assert not any(
        "more than 16" in note for note in notes_on(checkpoint, {"validation": alike}, None, config, alike, None)
    )


@pytest.mark.parametrize(
    ("rope", "most"),
    [
        ({"rope_type": "default"}, 16),
        ({"rope_type": "linear", "factor": 2.5}, 40),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}, 64),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}, 32),
        ({"rope_type": "dynamic", "factor": 4.0}, 16),
        (LONGROPE, 64),
    ],
)
def test_scaling_lengthens_what_the_model_takes(rope: dict[str, Any], most: int) -> None:
    checkpoint = classifier("llama", max_position_embeddings=16, rope_parameters={"rope_theta": 200.0} | rope)
    assert checkpoint.architecture.max_tokens(checkpoint.model.config) == most
    prepare(rows_of(texts_of((most, 4))), checkpoint, PassConfig())
    why = r" \(with rope type dynamic, .*\)" if rope["rope_type"] == "dynamic" else ""
    with pytest.raises(DataError, match=f"it has {most + 1} tokens, the model takes {most}{why}; shorten it"):
        prepare(rows_of(texts_of((4, most + 1))), checkpoint, PassConfig())


def test_scaled_positions_of_llama_3_are_those_in_the_config() -> None:
    rope = {"rope_type": "llama3", "rope_theta": 200.0, "factor": 8.0, "original_max_position_embeddings": 16}
    rope |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    checkpoint = classifier("llama", max_position_embeddings=64, rope_parameters=rope)
    assert checkpoint.architecture.max_tokens(checkpoint.model.config) == 64
