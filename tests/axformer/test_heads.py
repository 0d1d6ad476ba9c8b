"""A checkpoint of every head is known by its class, and its padding is settled before any work."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertModel, GPT2Config

from axformer.checkpoint import from_memory, load_checkpoint
from axformer.data.padding import settle_padding
from axformer.errors import CheckpointError
from axformer.heads import heads_of
from tests.tiny_models import tiny_config, tiny_head, tiny_tokenizer

TASKS = {
    "BertForSequenceClassification": "classification",
    "BertForTokenClassification": "token_classification",
    "BertForQuestionAnswering": "question_answering",
    "BertForMultipleChoice": "multiple_choice",
    "BertForMaskedLM": "masked_lm",
}
HEADS = {head.name: head for head in heads_of("bert", causal=False)}


@pytest.mark.parametrize("name", TASKS)
def test_each_head_is_known_on_disk_and_in_memory(name: str, tmp_path: Path) -> None:
    model = tiny_head(HEADS[name].auto_class, tiny_config())
    model.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    for checkpoint in (load_checkpoint(tmp_path), from_memory(model, tiny_tokenizer())):
        assert (checkpoint.head.name, checkpoint.task.name) == (name, TASKS[name])
        assert type(checkpoint.model).__name__ == name
        weights = checkpoint.model.state_dict()
        assert all(torch.equal(weight, weights[key]) for key, weight in model.state_dict().items())


def test_a_model_without_a_head_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        CheckpointError, match=r"a BertModel has no supported head; fine-tune it as one of .*BertForMaskedLM"
    ):
        from_memory(BertModel(tiny_config()), tiny_tokenizer())


def gpt2(pad: int | None) -> Any:
    return GPT2Config(vocab_size=65, n_embd=32, n_layer=1, n_head=2, bos_token_id=2, eos_token_id=3, pad_token_id=pad)


def test_a_model_without_a_pad_token_takes_the_tokenizers() -> None:
    config = gpt2(None)
    settle_padding(config, tiny_tokenizer(), causal=True)
    assert config.pad_token_id == tiny_tokenizer().pad_token_id == 0


def test_a_model_that_would_read_padding_as_text_is_refused() -> None:
    with pytest.raises(
        CheckpointError, match="the tokenizer pads with token 0, the model expects 7 and would read padding"
    ):
        settle_padding(gpt2(7), tiny_tokenizer(), causal=True)
    settle_padding(gpt2(7), tiny_tokenizer(), causal=False)  # attention masks tell the others what is padding


def test_a_tokenizer_without_a_pad_token_is_refused_with_the_remedy() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.pad_token = None
    with pytest.raises(CheckpointError, match=r"has no pad token, .* set tokenizer.pad_token = tokenizer.eos_token"):
        settle_padding(gpt2(None), tokenizer, causal=True)


def test_a_pad_token_that_the_model_does_not_know_is_refused_with_the_remedy() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"pad_token": "<new>"})
    with pytest.raises(
        CheckpointError, match=r"pads with token 65, the model knows 65 tokens; call model.resize_token_emb"
    ):
        settle_padding(gpt2(None), tokenizer, causal=True)
