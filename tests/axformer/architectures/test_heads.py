"""A checkpoint of every head is known by its class."""

from pathlib import Path

import pytest
import torch
from transformers import BertModel

from axformer.architectures.heads import heads_of
from axformer.errors import CheckpointError
from axformer.intake.checkpoint import from_memory, load_checkpoint
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
