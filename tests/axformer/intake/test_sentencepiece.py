"""Tokenizers that are a SentencePiece model and nothing else are read as SentencePiece itself reads them, or told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from transformers import AutoTokenizer
from transformers.convert_slow_tokenizer import import_protobuf

from axformer.errors import CheckpointError
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.tokenizer_files import check_sentencepiece
from tests.tiny_families import tiny_family_model

WORDS = ["river", "stone", "light", "table", "quiet", "green", "harbour", "train"]
LETTERS = "aeghilnorstuv"
NORMAL, UNKNOWN, CONTROL = 1, 2, 3
UNIGRAM, BPE = 1, 2
FAMILIES = {
    "albert": ("AlbertTokenizer", "spiece.model", ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]),
    "camembert": ("CamembertTokenizer", "sentencepiece.bpe.model", ["<unk>", "<s>", "</s>"]),
    "deberta-v2": ("DebertaV2Tokenizer", "spm.model", ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]),
    "xlm-roberta": ("XLMRobertaTokenizer", "sentencepiece.bpe.model", ["<unk>", "<s>", "</s>"]),
    "xlnet": ("XLNetTokenizer", "spiece.model", ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>"]),
}
TEXTS = ["river stone light", "a green table", " quiet  harbours", "nights, train!", "trainlight", ""]


def model_of(special: list[str], kind: int = UNIGRAM) -> Any:
    """A model of a few words and letters, as its trainer would write it, without a table of characters."""
    model = import_protobuf().ModelProto()
    for name in special:
        model.pieces.add(piece=name, score=0.0, type=UNKNOWN if "unk" in name.lower() else CONTROL)
    for rank, text in enumerate([*("\u2581" + word for word in WORDS), "\u2581", *LETTERS]):
        model.pieces.add(piece=text, score=-1.0 - rank, type=NORMAL)
    model.trainer_spec.model_type = kind
    model.trainer_spec.vocab_size = len(model.pieces)
    model.trainer_spec.unk_id = next(place for place, name in enumerate(special) if "unk" in name.lower())
    model.normalizer_spec.name = "identity"
    return model


def saved(directory: Path, family: str, **tokenizer: object) -> Path:
    """A checkpoint whose tokenizer is a SentencePiece model alone."""
    name, file, special = FAMILIES[family]
    tiny_family_model(family).save_pretrained(directory)
    (directory / file).write_bytes(model_of(special).SerializeToString())
    if tokenizer:
        (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name} | tokenizer))
    return directory


@pytest.mark.parametrize("tokenizer", [{}, {"do_lower_case": False}, {"model_max_length": 32}], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_pieces_are_those_of_sentencepiece(tmp_path: Path, family: str, tokenizer: dict[str, object]) -> None:
    loaded = load_checkpoint(saved(tmp_path, family, **tokenizer)).tokenizer
    own = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / FAMILIES[family][1]))
    for text in TEXTS:
        pieces = own.encode(text, out_type=str)
        known = [piece if own.piece_to_id(piece) != own.unk_id() else loaded.unk_token for piece in pieces]
        assert loaded.convert_ids_to_tokens(loaded(text, add_special_tokens=False)["input_ids"]) == known


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_saved_of_it_loads_without_the_model(tmp_path: Path, family: str) -> None:
    loaded = load_checkpoint(saved(tmp_path / "given", family)).tokenizer
    loaded.save_pretrained(tmp_path / "saved")
    again = AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert [again(text)["input_ids"] for text in TEXTS] == [loaded(text)["input_ids"] for text in TEXTS]
    assert not list((tmp_path / "saved").glob("*.model"))
    assert "axformer-intake" not in (tmp_path / "saved" / "tokenizer_config.json").read_text()


def test_a_table_comes_before_a_sentencepiece_model(tmp_path: Path) -> None:
    directory = saved(tmp_path, "deberta-v2")
    load_checkpoint(directory).tokenizer.save_pretrained(directory)
    (directory / "spm.model").write_bytes(b"no model")  # is not opened
    assert load_checkpoint(directory).tokenizer.tokenize("river") == ["\u2581river"]


def changed(change: Callable[[Any], object]) -> Callable[[Path], object]:
    """Write DeBERTa's model with a change."""

    def rewrite(directory: Path) -> None:
        model = model_of(FAMILIES["deberta-v2"][2])
        change(model)
        (directory / "spm.model").write_bytes(model.SerializeToString())

    return rewrite


def of_llama(directory: Path) -> None:
    """A BPE model in the place where Llama has it."""
    (directory / "spm.model").unlink()
    (directory / "tokenizer.model").write_bytes(model_of(["<unk>", "<s>", "</s>"], BPE).SerializeToString())
    (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LlamaTokenizer"}))


def under_another_name(directory: Path) -> None:
    (directory / "spm.model").rename(directory / "tokenizer.model")


def of_another_class(directory: Path) -> None:
    (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no model": (
        lambda directory: (directory / "spm.model").write_bytes(b"\xff" * 99),
        "spm.model cannot be read: it is not a Sent",
    ),
    "empty": (lambda directory: (directory / "spm.model").write_bytes(b""), "it has 0 pieces; 1 to 1000000 are read"),
    "a text of ranks": (
        lambda directory: (directory / "spm.model").write_text("IQ== 0\nIg== 1\n"),
        "it has 0 pieces",
    ),
    "BPE": (changed(lambda model: setattr(model.trainer_spec, "model_type", BPE)), "of another kind than Unigram"),
    "a long piece": (
        changed(lambda model: model.pieces.add(piece="a" * 600, score=0.0)),
        "pieces of more than 512 characters",
    ),
    "no score": (
        changed(lambda model: model.pieces.add(piece="ab", score=float("nan"))),
        "scores that are not numbers",
    ),
    "nothing unknown": (changed(lambda model: model.pieces.pop(3)), "no piece for the unknown"),
    "much of control": (
        changed(lambda model: [model.pieces.add(piece=f"<{n}>", score=0.0, type=CONTROL) for n in range(5000)]),
        "more than 4096 pieces of control",
    ),
    "Llama's": (of_llama, "it has tokenizer.model, and a LlamaTokenizer is not made of it here"),
    "another name": (under_another_name, "it has tokenizer.model, and a DebertaV2Tokenizer looks for spm.model"),
    "another class": (of_another_class, "it has spm.model, and a BertTokenizer is not made of it here"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_told_with_the_line_that_converts_it(tmp_path: Path, name: str) -> None:
    change, message = REFUSED[name]
    directory = saved(tmp_path, "deberta-v2")
    change(directory)
    line = rf"write tokenizer\.json beside it, .*AutoTokenizer\.from_pretrained\('{directory}', use_fast=True\)\.save_"
    with pytest.raises(CheckpointError, match=rf"has no tokenizer that loads: .*{message}.*; {line}") as error:
        load_checkpoint(directory)
    assert "\n" not in str(error.value)


def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axformer.intake.tokenizer_files.SENTENCEPIECE_BYTES", 10)
    path = tmp_path / "spm.model"
    path.write_bytes(model_of(["<unk>"]).SerializeToString())
    with pytest.raises(ValueError, match="it has more than 10 bytes"):
        check_sentencepiece(path)
