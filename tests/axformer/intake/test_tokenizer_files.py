"""A tokenizer does what its ``tokenizer.json`` says, whatever class is named beside it; one that knows no words is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
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


CHANGES: dict[str, Any] = {
    "no end": lambda table: setattr(
        table,
        "post_processor",
        processors.TemplateProcessing(single="[CLS] $A", pair="[CLS] $A [SEP] $B", special_tokens=ENDS),
    ),
    "no template": lambda table: setattr(table, "post_processor", processors.Sequence([])),
    "another word": lambda table: setattr(table, "normalizer", normalizers.Replace("word3", "word4")),
    "cased": lambda table: setattr(table, "normalizer", normalizers.NFC()),
    "accents": lambda table: setattr(table, "normalizer", normalizers.BertNormalizer(strip_accents=False)),
    "whole words": lambda table: setattr(table, "pre_tokenizer", pre_tokenizers.WhitespaceSplit()),
    "nothing": lambda table: None,
}
ENDS = [("[CLS]", 2), ("[SEP]", 3)]
SAME = ("nothing", "accents")
"""Changes that no token of the vocabulary shows."""


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "name", ["BertTokenizer", "BertTokenizerFast", "ElectraTokenizerFast", "TokenizersBackend", None]
)
def test_the_file_counts_where_its_class_is_of_another_mind(tmp_path: Path, change: str, name: str | None) -> None:
    """In the pass, in the files of its results, and with a note of it."""
    directory = named(save_tiny_checkpoint(tmp_path), name)
    table = Tokenizer.from_file(str(directory / TABLE))
    CHANGES[change](table)
    table.save(str(directory / TABLE))
    loaded = load_checkpoint(directory)
    texts = [*TEXTS, "WORD3 wörd4, word5word6", " ".join(WORDS)]
    expected = [table.encode(text).ids for text in texts]
    assert [loaded.tokenizer(text)["input_ids"] for text in texts] == expected
    pairs = [table.encode(text, "word7").ids for text in texts]
    assert [loaded.tokenizer(text, "word7")["input_ids"] for text in texts] == pairs
    alone = Tokenizer.from_str(loaded.companions.files[TABLE].decode())
    assert [alone.encode(text).ids for text in texts] == expected
    assert bool(loaded.notes) == (change not in SAME and name != "TokenizersBackend")
    assert all("reads texts otherwise than its tokenizer.json; the file counts" in note for note in loaded.notes)


@pytest.mark.parametrize(("key", "text"), [("do_lower_case", "WORD1"), ("strip_accents", "wórd1")])
@pytest.mark.parametrize("value", [True, False])
def test_what_the_settings_say_to_such_a_class_is_in_the_file_of_the_result(
    tmp_path: Path, key: str, text: str, value: bool
) -> None:
    directory = save_tiny_checkpoint(tmp_path)
    table = Tokenizer.from_file(str(directory / TABLE))
    table.normalizer = normalizers.BertNormalizer(lowercase=not value, strip_accents=not value)
    table.save(str(directory / TABLE))
    path = directory / CONFIG
    told = {"do_lower_case": not value, "strip_accents": not value, key: value, "tokenizer_class": "BertTokenizer"}
    path.write_text(json.dumps(json.loads(path.read_text()) | told))
    loaded = load_checkpoint(directory)
    found = loaded.tokenizer(text)["input_ids"]
    assert (1 not in found) == value, "whether the word is known"
    assert Tokenizer.from_str(loaded.companions.files[TABLE].decode()).encode(text).ids == found
    (note,) = loaded.notes
    assert "the settings of the second count" in note


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
