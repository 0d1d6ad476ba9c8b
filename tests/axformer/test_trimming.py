"""A checkpoint with fewer tokens answers as before, whatever its family."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer, BertTokenizer
from typer.testing import CliRunner

from axformer.architectures.registry import ARCHITECTURES
from axformer.cli.main import app
from axformer.data.columns import DataSource
from axformer.errors import CheckpointError, ConfigError, InputError
from axformer.trimming import trim
from tests.tiny_families import tiny_family_model
from tests.tiny_models import SPECIAL, WORDS, save_tiny_embedder, write_rows

CYRILLIC = [f"слово{index}" for index in range(20)]
KNOWN = SPECIAL + CYRILLIC + WORDS[: len(WORDS) - len(CYRILLIC)]
TEXTS = [f"{WORDS[index]} {WORDS[index + 1]} {WORDS[2]} слово" for index in range(25)]
FAMILIES = sorted(ARCHITECTURES)


def save_checkpoint(
    directory: Path, family: str = "bert", auto_class: Any = AutoModelForSequenceClassification
) -> Path:
    """A tiny checkpoint that knows words in two scripts."""
    tiny_family_model(family, auto_class).save_pretrained(directory)
    vocabulary = {token: place for place, token in enumerate(KNOWN)}
    side = "left" if family == "xlnet" else "right"
    BertTokenizer(vocab=vocabulary, model_max_length=64, padding_side=side).save_pretrained(directory)
    return directory


@torch.inference_mode()
def answers(directory: Path) -> torch.Tensor:
    """The logits of texts, by transformers alone."""
    model = AutoModelForSequenceClassification.from_pretrained(directory).eval()
    inputs = AutoTokenizer.from_pretrained(directory)(TEXTS, padding=True, return_tensors="pt")
    logits: torch.Tensor = model(**inputs).logits
    return logits


@pytest.mark.parametrize("family", FAMILIES)
def test_without_the_tokens_of_other_scripts_every_family_answers_as_before(family: str, tmp_path: Path) -> None:
    checkpoint = save_checkpoint(tmp_path / "whole", family)
    trimmed = trim(checkpoint, tmp_path / "small", ["Latin"])
    assert (trimmed.tokens_before, trimmed.tokens) == (len(KNOWN), len(KNOWN) - len(CYRILLIC))
    assert (trimmed.rows, trimmed.unseen) == (None, None)
    assert trimmed.bytes < trimmed.bytes_before
    torch.testing.assert_close(answers(tmp_path / "small"), answers(checkpoint), rtol=1e-5, atol=1e-5)


def test_given_texts_keep_their_tokens_and_say_what_new_ones_would_lose(tmp_path: Path) -> None:
    checkpoint = save_checkpoint(tmp_path / "whole")
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in (*TEXTS[:3], "word9 word2")), encoding="utf-8"
    )
    trimmed = trim(checkpoint, tmp_path / "small", data=DataSource(str(rows)))
    assert (trimmed.rows, trimmed.tokens) == (4, len(SPECIAL) + len({"word0", "word1", "word2", "word3", "word9"}))
    assert trimmed.unseen == 3 / 4, "word0, word3 and word9 are in one text alone"
    kept = AutoTokenizer.from_pretrained(tmp_path / "small")
    assert kept.tokenize("word0 word9 word30") == ["word0", "word9", "[UNK]"]
    more = trim(checkpoint, tmp_path / "more", data=DataSource(str(rows)), tokens=40)
    assert (more.tokens, more.unseen) == (40, 0.0)
    torch.testing.assert_close(answers(tmp_path / "more")[:3], answers(checkpoint)[:3])


def test_an_embedder_keeps_its_modules_and_its_vectors(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    whole = save_tiny_embedder(tmp_path)
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), encoding="utf-8")
    trimmed = trim(whole, tmp_path / "small", data=DataSource(str(rows)))
    assert trimmed.tokens < trimmed.tokens_before
    before, after = (SentenceTransformer(str(one), device="cpu").encode(TEXTS) for one in (whole, tmp_path / "small"))
    torch.testing.assert_close(torch.tensor(after), torch.tensor(before), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("asked", ["texts", "scripts"])
def test_the_prompts_of_an_embedder_keep_their_tokens(asked: str, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    whole = save_tiny_embedder(tmp_path)
    data = DataSource(str(write_rows(tmp_path / "rows.jsonl", [{"text": "word7 word8"}] * 2)))
    trim(whole, tmp_path / "small", **({"data": data} if asked == "texts" else {"scripts": ["Greek"]}))
    models = [SentenceTransformer(str(one), device="cpu") for one in (whole, tmp_path / "small")]
    for prompt in ("query", "document", "all"):
        text = "word7 word8" if asked == "texts" else "…"
        before, after = (model.encode([text], prompt_name=prompt) for model in models)
        torch.testing.assert_close(torch.tensor(after), torch.tensor(before), rtol=1e-5, atol=1e-5)


def test_rows_longer_than_the_model_takes_keep_the_tokens_of_their_beginning(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", [{"text": " ".join(WORDS[:15] * 20)}])
    trimmed = trim(save_checkpoint(tmp_path / "whole"), tmp_path / "small", data=DataSource(str(rows)))
    assert trimmed.tokens == len(SPECIAL) + 15


def test_what_cannot_be_trimmed_is_refused_in_a_line(tmp_path: Path) -> None:
    checkpoint = save_checkpoint(tmp_path / "whole")
    with pytest.raises(ConfigError, match="nothing says which tokens stay; give --scripts"):
        trim(checkpoint, tmp_path / "small")
    with pytest.raises(ConfigError, match="--tokens 9 goes with --data"):
        trim(checkpoint, tmp_path / "small", ["Latin"], tokens=9)
    with pytest.raises(InputError, match="exists and is not empty"):
        trim(checkpoint, checkpoint, ["Latin"])
    assert not (tmp_path / "small").exists()
    masked = save_checkpoint(tmp_path / "masked", auto_class=AutoModelForMaskedLM)
    with pytest.raises(CheckpointError, match="a language model answers with tokens of its vocabulary"):
        trim(masked, tmp_path / "small", ["Latin"])


def test_the_command_says_what_stays_and_how_to_test_the_rest(tmp_path: Path) -> None:
    checkpoint, rows = save_checkpoint(tmp_path / "whole"), tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"text": "word1 word2"}) + "\n", encoding="utf-8")
    asked = ["trim", str(checkpoint), "--data", str(rows), "--output"]
    told = " ".join(CliRunner().invoke(app, [*asked, str(tmp_path / "small")]).output.split())
    assert f"7 of {len(KNOWN)} tokens stay" in told
    assert "Each text of 1 has the same tokens as before. About 100.0% of new ones have a token that went" in told
    assert "axformer certify --answers old.jsonl new.jsonl --within-points 1" in told
    as_json = CliRunner().invoke(app, [*asked, str(tmp_path / "again"), "--json"]).output
    assert json.loads(as_json)["tokens"] == 7
    embedder = ["trim", str(save_tiny_embedder(tmp_path)), *asked[2:], str(tmp_path / "vectors")]
    told = " ".join(CliRunner().invoke(app, embedder).output.split())
    assert "Compare both models on other rows before you serve it." in told
    assert "axformer answers" not in told, "which takes no embedder"
    by_script = CliRunner().invoke(
        app, ["trim", str(checkpoint), "--scripts", "Latin", "--output", str(tmp_path / "latin")]
    )
    assert "Texts in Latin have the same tokens, and the same answers, as before." in by_script.output
