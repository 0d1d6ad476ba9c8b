"""A tokenizer does what its ``tokenizer.json`` says, whatever class is named beside it; one that knows no words is refused."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from axformer.errors import CheckpointError
from axformer.intake.checkpoint import load_checkpoint
from tests.tiny_families import tiny_family_model
from tests.tiny_models import SPECIAL, WORDS, save_tiny_checkpoint, tiny_tokenizer

CONFIG, TABLE = "tokenizer_config.json", "tokenizer.json"
TEXTS = ["word1 word2", "nobody knows word3", ""]


def named(directory: Path, name: object, file: str = CONFIG) -> Path:
    """The checkpoint with another class of tokenizers."""
    path = directory / file
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tokenizer_class": name}))
    return directory


def ids(directory: Path) -> list[list[int]]:
    found: list[list[int]] = load_checkpoint(directory).tokenizer(TEXTS)["input_ids"]
    return found


@pytest.mark.parametrize(
    "name",
    [
        *(
            "HerbertTokenizerFast",
            "HerbertTokenizer",
            "PhobertTokenizer",
            "MyOwnTokenizerFast",
            "BertJapaneseTokenizer",
        ),
        *("RobertaTokenizer", "GPT2TokenizerFast", "XLMRobertaTokenizer", "DebertaV2TokenizerFast", "LlamaTokenizer"),
        *("PreTrainedTokenizerFast", "TokenizersBackend", "BertTokenizerFast", None),
    ],
)
def test_the_table_is_what_counts(tmp_path: Path, name: str | None) -> None:
    """Of classes that are not known, and of those that would make another tokenizer of it."""
    directory = named(save_tiny_checkpoint(tmp_path), name)
    assert ids(directory) == [tiny_tokenizer()(text)["input_ids"] for text in TEXTS]


def test_a_class_in_the_models_configuration_counts_where_the_tokenizer_names_none(tmp_path: Path) -> None:
    directory = named(named(save_tiny_checkpoint(tmp_path), None), "HerbertTokenizer", "config.json")
    assert ids(directory) == [tiny_tokenizer()(text)["input_ids"] for text in TEXTS]


def test_a_family_reads_the_table_of_another_kind(tmp_path: Path) -> None:
    """RoBERTa's own class would take the words for byte pairs."""
    tiny_family_model("roberta").save_pretrained(tmp_path)
    table = Tokenizer(models.WordLevel({word: place for place, word in enumerate(SPECIAL + WORDS)}, unk_token="[UNK]"))
    table.pre_tokenizer = pre_tokenizers.Whitespace()
    plain = PreTrainedTokenizerFast(tokenizer_object=table, pad_token="[PAD]", unk_token="[UNK]")
    plain.save_pretrained(tmp_path)
    path = tmp_path / CONFIG
    path.write_text(
        json.dumps({key: value for key, value in json.loads(path.read_text()).items() if key != "tokenizer_class"})
    )
    assert ids(tmp_path) == [plain(text)["input_ids"] for text in TEXTS]


@pytest.mark.parametrize(
    ("file", "text"), [("vocab.json", json.dumps({"word1": 0, "word2": 1})), ("merges.txt", "a b\n")]
)
def test_tables_that_the_class_does_not_read_are_told(tmp_path: Path, file: str, text: str) -> None:
    directory = save_tiny_checkpoint(tmp_path)
    (directory / TABLE).unlink()
    (directory / file).write_text(text)
    with pytest.raises(
        CheckpointError, match=r"a BertTokenizer finds no words in its files; write tokenizer\.json beside it"
    ):
        load_checkpoint(directory)


@pytest.mark.parametrize("place", [CONFIG, "config.json"])
def test_a_class_that_runs_programs_is_refused_without_a_table(tmp_path: Path, place: str) -> None:
    """Japanese BERT cuts words by a program of its own; BERT's class would read its vocabulary, and cut them otherwise."""
    directory = named(named(save_tiny_checkpoint(tmp_path), None), "BertJapaneseTokenizer", place)
    (directory / TABLE).unlink()
    (directory / "vocab.txt").write_text("\n".join(SPECIAL + WORDS))
    with pytest.raises(
        CheckpointError, match=r"'BertJapaneseTokenizer', which is not loaded without tokenizer\.json; write"
    ):
        load_checkpoint(directory)


@pytest.mark.parametrize("content", ["{}", "{", '{"model": {"type": "Unknown"}}'])
def test_a_damaged_table_is_not_asked_for_again(tmp_path: Path, content: str) -> None:
    directory = named(save_tiny_checkpoint(tmp_path), "TokenizersBackend")
    (directory / TABLE).write_text(content)
    with pytest.raises(CheckpointError, match=r"has no tokenizer that loads: .*; save it again$") as error:
        load_checkpoint(directory)
    assert "write tokenizer.json" not in str(error.value)
