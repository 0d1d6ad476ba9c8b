"""Tokenizers that name classes, files or code, that are no tables, or that give up."""

import json
import os
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from axformer.config import PassConfig
from axformer.data.reading import rows_of
from axformer.errors import CheckpointError, DataError
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import encode
from tests.hostile.checkpoints import Change, changed_json, listed, must_be_refused, written

CONFIG, TABLE = "tokenizer_config.json", "tokenizer.json"


def table_with(**changes: Any) -> Change:
    """Other parts of the tokenizer's table."""

    def rewrite(directory: Path) -> None:
        path = directory / TABLE
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))
        changed_json(CONFIG, tokenizer_class="TokenizersBackend")(directory)

    return rewrite


def large(directory: Path) -> None:
    """A table of more bytes than any has, which take no room."""
    os.truncate(directory / TABLE, (64 << 20) + 1)


def plain_large(directory: Path) -> None:
    (directory / "vocab.txt").touch()
    os.truncate(directory / "vocab.txt", (64 << 20) + 1)


CASES: dict[str, tuple[Change, str]] = {
    "table of no JSON": (written(TABLE, "{"), "tokenizer.json cannot be read"),
    "table empty": (written(TABLE, ""), "tokenizer.json cannot be read"),
    "table an empty object": (written(TABLE, "{}"), "has no tokenizer that loads"),
    "table a list": (written(TABLE, "[]"), "tokenizer.json cannot be read: it holds no object"),
    "table no UTF-8": (written(TABLE, b'{"\xff": 1}'), "is not UTF-8"),
    "table nested": (written(TABLE, '{"a":' * 9000 + "1" + "}" * 9000), "nested more than 32 deep"),
    "table with a key twice": (written(TABLE, '{"model": {}, "model": {}}'), "the key 'model' twice"),
    "table large": (large, "more than 67108864 bytes"),
    "vocabulary large": (plain_large, "more than 67108864 bytes"),
    "no model": (table_with(model=None), "has no tokenizer that loads"),
    "model unknown": (table_with(model={"type": "Evil"}), "has no tokenizer that loads"),
    "model a text": (table_with(model="evil"), "has no tokenizer that loads"),
    "vocabulary a number": (table_with(model={"type": "WordPiece", "vocab": 1}), "has no tokenizer that loads"),
    "vocabulary with negative ids": (
        table_with(model={"type": "WordLevel", "vocab": {"a": -1}, "unk_token": "a"}), "has no tokenizer that loads",
    ),
    "normalizer unknown": (table_with(normalizer={"type": "Evil"}), "has no tokenizer that loads"),
    "normalizer damaged": (
        table_with(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}), "has no tokenizer that loads",
    ),
    "pattern damaged": (
        table_with(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(("}, "behavior": "Isolated", "invert": False}),
        "has no tokenizer that loads",
    ),
    "config of no JSON": (written(CONFIG, "{"), "tokenizer_config.json cannot be read"),
    "config a list": (written(CONFIG, "[]"), "tokenizer_config.json cannot be read: it holds no object"),
    "config nested": (written(CONFIG, '{"a":' * 40 + "1" + "}" * 40), "nested more than 32 deep"),
    "pad token far away": (changed_json(CONFIG, pad_token="[NEW]"), "pads with token"),
    "pad token a number": (changed_json(CONFIG, pad_token=7), "has no tokenizer that loads|has no pad token"),
    "added tokens a list": (changed_json(CONFIG, added_tokens_decoder=[1]), "has no tokenizer that loads"),
    "added tokens of numbers": (changed_json(CONFIG, added_tokens_decoder={"0": 7}), "has no tokenizer that loads"),
    "special tokens a list": (written("special_tokens_map.json", "[]"), "special_tokens_map.json cannot be read"),
    "added tokens of no JSON": (written("added_tokens.json", "x"), "added_tokens.json cannot be read"),
    "nothing at all": (lambda directory: [(directory / name).unlink() for name in (TABLE, CONFIG)], "has no tokenizer"),
}  # fmt: skip


@pytest.mark.slow
def test_hostile_tokenizers_are_refused(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for name, (change, message) in CASES.items():
        with subtests.test(name):
            must_be_refused(whole, tmp_path_factory.mktemp("case"), change, message)


IGNORED: dict[str, object] = {
    "auto_map": {"AutoTokenizer": ["evil.Tokenizer", None]},
    "vocab_file": "/etc/passwd",
    "merges_file": "/etc/passwd",
    "tokenizer_file": "/etc/passwd",
    "special_tokens_map_file": "/etc/passwd",
    "name_or_path": "/etc",
    "init_inputs": ["/etc/passwd"],
    "_commit_hash": "evil",
    "gguf_file": "/etc/passwd",
    "backend": "evil",
    "tokenizer_object": "evil",
    "sp_model_kwargs": {"model_file": "/etc/passwd"},
    "chat_template": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
}
TEXTS = ["word1 word2", "nobody knows this"]


def test_an_argument_that_names_files_or_code_changes_nothing(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    plain = load_checkpoint(whole).tokenizer(TEXTS)["input_ids"]
    for key, value in IGNORED.items():
        with subtests.test(key):
            place = tmp_path_factory.mktemp("case")
            shutil.copytree(whole, place / "copy")
            changed_json(CONFIG, **{key: value})(place / "copy")
            before = listed(place)
            assert load_checkpoint(place / "copy").tokenizer(TEXTS)["input_ids"] == plain
            assert listed(place) == before


CLASSES = ["EvilTokenizer", "BertJapaneseTokenizer", "../evil.Tokenizer", 7, {"a": 1}]


@pytest.mark.slow
def test_a_class_that_is_not_known_is_not_loaded(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    """The table says all that a tokenizer does; without it, the class could do anything."""
    plain = load_checkpoint(whole).tokenizer(TEXTS)["input_ids"]
    for place, named in product([CONFIG, "config.json"], CLASSES):
        with subtests.test(place, named=named):
            copy = tmp_path_factory.mktemp("case") / "copy"
            shutil.copytree(whole, copy)
            if place != CONFIG:
                changed_json(CONFIG, tokenizer_class=None)(copy)
            changed_json(place, tokenizer_class=named)(copy)
            assert load_checkpoint(copy).tokenizer(TEXTS)["input_ids"] == plain
            (copy / TABLE).unlink()
            (copy / "vocab.txt").write_text("[PAD]\n[UNK]\nword1\n")
            with pytest.raises(
                CheckpointError, match=r"which is not loaded without tokenizer\.json; write tokenizer\.json beside it"
            ):
                load_checkpoint(copy)


def test_a_pattern_that_gives_up_on_a_text_is_told(whole: Path, tmp_path: Path) -> None:
    """The library panics then, which would end the process."""
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    table_with(pre_tokenizer=split)(copy)
    loaded = load_checkpoint(copy)
    rows = rows_of([{"text": "a" * 60 + "!", "label": 0}, {"text": "b", "label": 1}])
    with pytest.raises(DataError, match=r"tokenizer gives up on it .*retry-limit.*; save the checkpoint with another"):
        encode(rows, loaded, PassConfig())


def test_a_tokenizer_with_more_words_than_the_model_is_told(whole: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0, "[PAD]": 1, "word": 900}, "unk_token": "[UNK]"}
    table_with(model=model, added_tokens=[], post_processor=None)(copy)
    changed_json(CONFIG, added_tokens_decoder={})(copy)
    loaded = load_checkpoint(copy)
    rows = rows_of([{"text": "word", "label": 0}, {"text": "other", "label": 1}])
    with pytest.raises(CheckpointError, match="input_ids up to 900, the model knows 65"):
        encode(rows, loaded, PassConfig())
