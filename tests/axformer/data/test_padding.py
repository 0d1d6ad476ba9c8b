"""Who fills up short rows, and the law behind it: what a sample loses does not depend on the rows beside it."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from axformer.config import PassConfig
from axformer.data.padding import Padding, padding_of
from axformer.data.reading import rows_of
from axformer.errors import CheckpointError
from axformer.forms.facts import facts_of
from axformer.intake.checkpoint import Checkpoint, from_memory
from axformer.intake.dataset import prepare
from axformer.opening import Inputs
from axformer.repair.finetune import Lesson, finetune
from axformer.repair.teacher import TaskLoss
from axformer.run import PruningRun
from axformer.scores.measured import measure
from axformer.wire.finetuning import FinetuneSettings
from tests.tiny_families import tiny_family_config, tiny_family_model
from tests.tiny_models import WORDS, tagged_rows, tiny_rows, tiny_tokenizer

CAUSAL = ("gpt2", "llama", "qwen3")
LAST = len(WORDS) + 4
"""The token of the last word."""


def tokenizer_with(pad_token: str | None, side: str = "right") -> Any:
    """One that adds nothing to a text, as those of decoders."""
    tokenizer = tiny_tokenizer()
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="$A", pair="$A $B")
    tokenizer.pad_token, tokenizer.padding_side = pad_token, side
    return tokenizer


def config(pad: int | None, family: str = "gpt2") -> Any:
    return tiny_family_config(family, pad_token_id=pad)


def padding(pad: int | None, tokenizer: Any, *, causal: bool = True, pooled: bool = True) -> Padding:
    return padding_of(config(pad), tokenizer, causal=causal, pooled=pooled)


def test_a_causal_model_is_padded_on_the_right_with_any_token() -> None:
    bare, own = tokenizer_with(None, "left"), tokenizer_with("[PAD]", "left")
    assert padding(None, bare, pooled=False) == Padding(0, "right")
    assert padding(7, bare, pooled=False) == padding(7, bare) == Padding(7, "right")
    assert padding(None, own, pooled=False) == padding(0, own) == Padding(0, "right")


def test_rows_go_alone_where_a_head_reads_the_last_token_and_nothing_tells_it_from_padding() -> None:
    for tokenizer in (tokenizer_with(None), tokenizer_with("[PAD]")):
        assert padding(None, tokenizer).alone
    assert padding(-1, tokenizer_with(None)).alone, "old Llama models have -1 for none"


def test_tokenizers_pad_for_models_that_look_both_ways_and_their_models_where_they_cannot() -> None:
    assert padding(7, tokenizer_with("[PAD]"), causal=False) == Padding()
    assert padding(7, tokenizer_with(None, "left"), causal=False) == Padding(7, "left")
    with pytest.raises(CheckpointError, match="neither the tokenizer nor the model names a pad token"):
        padding(None, tokenizer_with(None), causal=False)


def test_a_model_that_would_read_padding_as_text_is_refused() -> None:
    with pytest.raises(CheckpointError, match="pads with token 0, the model expects 7 and would read padding as text"):
        padding(7, tokenizer_with("[PAD]"))


def test_a_pad_token_that_the_model_does_not_know_is_refused_with_the_remedy() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"pad_token": "<new>"})
    with pytest.raises(
        CheckpointError, match=r"pads with token 65, the model knows 65 tokens; call model.resize_token"
    ):
        padding(None, tokenizer)


TOKENS = st.lists(st.integers(0, 9), min_size=1, max_size=6)


@given(st.lists(TOKENS, min_size=1, max_size=5), st.sampled_from(["left", "right"]))
def test_what_is_filled_up_is_what_a_tokenizer_fills_up(rows: list[list[int]], side: str) -> None:
    tokenizer = tokenizer_with("word1", side)
    features = {"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]}
    expected = tokenizer.pad(features, padding="longest", return_tensors="pt", verbose=False)
    found = Padding(tokenizer.pad_token_id, side).fill(features)
    assert all(torch.equal(values, expected[name]) for name, values in found.items())


def checkpoint_of(family: str, head: Any, pad: int | None, *, has_token: bool, side: str) -> Checkpoint:
    model = tiny_family_model(family, head, pad_token_id=pad)
    return from_memory(model, tokenizer_with("[PAD]" if has_token else None, side))


def losses_in(checkpoint: Checkpoint, records: list[dict[str, Any]], batch_tokens: int) -> torch.Tensor:
    data = prepare(rows_of(records), checkpoint, PassConfig(batch_tokens=batch_tokens))
    return measure(checkpoint.model, checkpoint.task, data.samples).losses


@pytest.mark.parametrize("family", CAUSAL)
@pytest.mark.parametrize(
    "head", [AutoModelForCausalLM, AutoModelForSequenceClassification, AutoModelForTokenClassification]
)
@pytest.mark.parametrize(("pad", "has_token"), [(None, False), (None, True), (0, False), (0, True), (LAST, False)])
def test_a_samples_loss_does_not_depend_on_its_batch(family: str, head: Any, pad: int | None, has_token: bool) -> None:
    if head is AutoModelForTokenClassification:
        records = tagged_rows(12, ["LABEL_0", "LABEL_1"])
    else:
        records = [row | {"text": f"word1 {row['text']}"} for row in tiny_rows(12)]
    for side in ("right", "left"):
        checkpoint = checkpoint_of(family, head, pad, has_token=has_token, side=side)
        together, alone = (losses_in(checkpoint, records, size) for size in (10_000, 1))
        torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-6)
        assert checkpoint.model.config.pad_token_id == pad, "the model is as it was"


@pytest.mark.parametrize("family", CAUSAL)
@torch.inference_mode()
def test_a_classifier_without_a_pad_token_reads_the_last_token_whatever_it_is(family: str) -> None:
    """Also where a text ends with the token that fills up others."""
    checkpoint = checkpoint_of(family, AutoModelForSequenceClassification, None, has_token=True, side="right")
    texts = ["word1 [PAD]", "word1 word2 word3", f"word2 {WORDS[-1]}"]
    records = [{"text": text, "label": index % 2} for index, text in enumerate(texts)]
    data = prepare(rows_of(records), checkpoint, PassConfig())
    found = measure(checkpoint.model, checkpoint.task, data.samples).losses
    for text, label, loss in zip(texts, (0, 1, 0), found, strict=True):
        row = checkpoint.tokenizer([text], return_tensors="pt", return_token_type_ids=family == "gpt2")
        logits = checkpoint.model(**row).logits[0]
        torch.testing.assert_close(torch.nn.functional.cross_entropy(logits, torch.tensor(label)), loss)
    assert data.samples.encoded.features["input_ids"][0][-1] == checkpoint.tokenizer.pad_token_id


def test_rows_that_go_alone_are_learned_from_in_the_same_steps() -> None:
    """A row that does not end with the pad token is read the same with a pad token and without."""
    settings = FinetuneSettings(epochs=2, learning_rate=1e-3, batch_size=4)
    calm = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    found = []
    for pad in (0, None):
        model = tiny_family_model("gpt2", AutoModelForSequenceClassification, pad_token_id=pad, **calm)
        checkpoint = from_memory(model, tokenizer_with("[PAD]"))
        samples = prepare(rows_of(tiny_rows(10)), checkpoint, PassConfig()).samples
        assert samples.encoded.padding.alone is (pad is None)
        lesson = Lesson(samples.encoded, TaskLoss(checkpoint.task), settings)
        finetune(checkpoint.model, checkpoint.tokenizer, lesson)
        found.append(measure(checkpoint.model, checkpoint.task, samples).losses)
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-4)


def test_a_pass_bakes_no_pad_token_in(tmp_path: Path) -> None:
    checkpoint = checkpoint_of("gpt2", AutoModelForSequenceClassification, None, has_token=False, side="right")
    settings = PassConfig(majority_fraction=0.2)
    run = PruningRun(Inputs(checkpoint, prepare(rows_of(tiny_rows(16)), checkpoint, settings)), settings)
    assert any("one at a time" in note for note in run.notes)
    list(run.trials())
    report = run.publish(tmp_path / "out")
    assert {cell["batch"] for cell in report["base_form"]["speed"]} == {1}
    loaded = type(run.compact_model()).from_pretrained(tmp_path / "out" / "model")
    assert loaded.config.pad_token_id is None
    assert AutoTokenizer.from_pretrained(tmp_path / "out" / "model").pad_token is None


def test_a_graph_is_told_how_its_model_is_padded() -> None:
    model, tokenizer = tiny_family_model("gpt2", AutoModelForCausalLM, pad_token_id=None), tokenizer_with(None, "left")
    told = facts_of(model, tokenizer, from_memory(model, tokenizer).padding, ("input_ids",), ("logits",))
    assert (told.pad_token_id, told.pad_token, told.padding_side) == (0, "[PAD]", "right")


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta", "camembert"])
def test_a_family_that_counts_positions_behind_padding_needs_a_pad_token(family: str) -> None:
    checkpoint = from_memory(tiny_family_model(family, pad_token_id=None), tiny_tokenizer())
    with pytest.raises(CheckpointError, match=f"no pad_token_id, behind which models of type '{family}' count"):
        prepare(rows_of(tiny_rows(4)), checkpoint, PassConfig())
