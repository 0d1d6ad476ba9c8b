"""Words of tagged sentences are read by a byte-level tokenizer as the model learned them, whatever its files say of spaces."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoModelForTokenClassification, PreTrainedTokenizerFast

from axformer.data.reading import rows_of
from axformer.intake.checkpoint import Checkpoint, from_memory, load_checkpoint
from tests.tiny_families import tiny_family_config
from tests.tiny_models import SPECIAL, WORDS, tagged_rows

TAGS = ["LABEL_0", "LABEL_1", "LABEL_2"]
SETTINGS = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}


def byte_level(*, spaces: bool, nested: bool = False) -> Tokenizer:
    table = Tokenizer(models.BPE())
    splits: Any = pre_tokenizers.ByteLevel(add_prefix_space=spaces)
    table.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Punctuation(), splits]) if nested else splits
    table.decoder = decoders.ByteLevel()
    text = " " + " ".join(WORDS) * 3
    table.train_from_iterator([text], trainers.BpeTrainer(vocab_size=300, special_tokens=SPECIAL))
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    table.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return table


def tagger(family: str, words: Tokenizer) -> tuple[Any, list[dict[str, object]]]:
    """A model, and sentences with the tags that it gives them if words are read by this tokenizer."""
    torch.manual_seed(0)
    config = tiny_family_config(family, vocab_size=400, num_labels=3)
    model = AutoModelForTokenClassification.from_config(config).eval()
    rows = tagged_rows(30, TAGS)
    for row in rows:
        read = words.encode(row["tokens"], is_pretokenized=True)  # type: ignore[arg-type]
        with torch.no_grad():
            answers = model(input_ids=torch.tensor([read.ids])).logits[0].argmax(-1).tolist()
        first = [read.word_ids.index(word) for word in range(len(row["tokens"]))]  # type: ignore[arg-type]
        row["tags"] = [TAGS[answers[place]] for place in first]
    return model, rows


def saved(directory: Path, model: Any, table: Tokenizer, **settings: object) -> Path:
    model.save_pretrained(directory)
    table.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps(SETTINGS | settings))
    return directory


def accuracy(checkpoint: Checkpoint, rows: list[dict[str, object]]) -> float:
    right = 0
    for row in rows:
        read = checkpoint.tokenizer(row["tokens"], is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            answers = checkpoint.model(input_ids=read["input_ids"]).logits[0].argmax(-1).tolist()
        words = read.word_ids(0)
        tags = row["tags"]
        assert isinstance(tags, list)
        right += sum(TAGS[answers[words.index(word)]] == tag for word, tag in enumerate(tags))
    return right / sum(len(row["tags"]) for row in rows)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize("family", ["roberta", "gpt2", "modernbert"])
@pytest.mark.parametrize("named", ["RobertaTokenizerFast", "LongformerTokenizerFast", "PreTrainedTokenizerFast", None])
@pytest.mark.parametrize("spaces", [True, False])
def test_words_are_read_as_the_model_learned_them(tmp_path: Path, family: str, named: str | None, spaces: bool) -> None:
    model, rows = tagger(family, byte_level(spaces=spaces))
    directory = saved(tmp_path, model, byte_level(spaces=False), tokenizer_class=named)
    checkpoint = load_checkpoint(directory).for_rows(rows_of(rows))
    assert accuracy(checkpoint, rows) == 1.0
    assert ("add_prefix_space=True is set" in str(checkpoint.notes)) == spaces
    files = checkpoint.companions.files
    assert json.loads(files["tokenizer_config.json"])["add_prefix_space"] is spaces
    sentence = rows[0]["tokens"]
    alone = Tokenizer.from_str(files["tokenizer.json"].decode())
    assert (
        alone.encode(sentence, is_pretokenized=True).ids
        == checkpoint.tokenizer(  # type: ignore[arg-type]
            sentence, is_split_into_words=True
        )["input_ids"]
    )


@pytest.mark.parametrize("named", ["RobertaTokenizerFast", "LongformerTokenizerFast", "MyOwnTokenizer", None])
@pytest.mark.parametrize("value", [True, False])
def test_the_switch_is_heard_whatever_the_class_is_called(tmp_path: Path, named: str | None, value: bool) -> None:
    model, rows = tagger("roberta", byte_level(spaces=value))
    table = byte_level(spaces=not value)
    directory = saved(tmp_path, model, table, tokenizer_class=named, add_prefix_space=value)
    checkpoint = load_checkpoint(directory)
    assert accuracy(checkpoint, rows) == 1.0
    alone = Tokenizer.from_str(checkpoint.companions.files["tokenizer.json"].decode())
    assert alone.encode("word1 word2").ids == checkpoint.tokenizer("word1 word2")["input_ids"]
    assert "the settings of the second count" in str(checkpoint.notes)


def test_a_tokenizer_of_several_steps_and_in_memory() -> None:
    model, rows = tagger("roberta", byte_level(spaces=True, nested=True))
    plain = PreTrainedTokenizerFast(tokenizer_object=byte_level(spaces=False, nested=True), **SETTINGS)  # type: ignore[arg-type]
    checkpoint = from_memory(model, plain).for_rows(rows_of(rows))
    assert accuracy(checkpoint, rows) == 1.0
    assert "add_prefix_space=True is set" in str(checkpoint.notes)
    assert plain.backend_tokenizer.encode("word1").ids != checkpoint.tokenizer("word1")["input_ids"], "not the user's"


def test_other_tokenizers_and_other_tasks_stay_as_they_are(checkpoint: Path) -> None:
    loaded = load_checkpoint(checkpoint)
    same = loaded.for_rows(rows_of([{"text": "word1", "label": 0}]))
    assert same.tokenizer is loaded.tokenizer
    assert same.notes == ()
