import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import BertModel, LongformerConfig, LongformerForSequenceClassification

from axformer.errors import CheckpointError
from axformer.intake.checkpoint import digest, load_checkpoint
from axformer.intake.weights import read_weights
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_tokenizer


def change_config(directory: Path, **changes: object) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def truncate(directory: Path) -> None:
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def as_pickle(directory: Path) -> None:
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")


def without_head(directory: Path) -> None:
    BertModel(tiny_config()).save_pretrained(directory)


def with_lost_head(directory: Path) -> None:
    without_head(directory)
    change_config(directory, architectures=["BertForSequenceClassification"])


def of_another_family(directory: Path) -> None:
    LongformerForSequenceClassification(LongformerConfig(dim=32, n_heads=2, n_layers=1, hidden_dim=32)).save_pretrained(
        directory
    )


BREAKS: list[tuple[Callable[[Path], object], str]] = [
    (shutil.rmtree, "is not a directory; give a directory, or hf://organisation/name"),
    (lambda directory: (directory / "config.json").unlink(), "has no config.json"),
    (lambda directory: (directory / "config.json").write_text("{"), "config.json cannot be read"),
    (lambda directory: (directory / "config.json").write_text("[]"), "config.json holds no object"),
    (
        lambda directory: (directory / "model.safetensors").unlink(),
        "has neither model.safetensors nor .*; save the model again",
    ),
    (as_pickle, "pickled weights are not read, save the model again with save_pretrained"),
    (truncate, "cannot be loaded: .*; copy it again"),
    (of_another_family, "models of type 'longformer' are not supported; supported are: albert, bert"),
    (without_head, r"has no supported head \(architectures: BertModel\); fine-tune it as one of BertForSequence"),
    (with_lost_head, "does not hold all weights of BertForSequenceClassification: .*classifier.bias"),
    (lambda directory: change_config(directory, hidden_size=64), "does not hold all weights|cannot be loaded"),
    (lambda directory: change_config(directory, hidden_size="wide"), "cannot be loaded"),
    (lambda directory: (directory / "tokenizer.json").write_text("{}"), "has no tokenizer that loads"),
]


def test_what_is_no_directory_is_told_with_what_to_write(tmp_path: Path, checkpoint: Path) -> None:
    (tmp_path / "link").symlink_to("gone")
    (tmp_path / "model.tar.gz").write_bytes(b"")
    for text, message in {
        "org/name": "is not a directory; give a directory, or hf://org/name",
        "nowhere": "is not a directory; give a directory, or hf://organisation/name",
        "https://huggingface.co/org/name/tree/v1": "write hf://org/name@v1",
        "hf://org/name/model.safetensors": "write hf://org/name",
        "hf:org/name": "write hf://org/name",
        f"file://{checkpoint}": "give it as a path, without file://",
        "s3://bucket/model": "is not a directory; give a directory, or hf://organisation/name",
        str(checkpoint / "config.json"): f"is a file; give the directory that it lies in, {checkpoint}",
        str(tmp_path / "model.tar.gz"): "is a file; unpack it and give its directory",
        str(tmp_path / "link"): "is a link to gone, which is gone",
    }.items():
        with pytest.raises(CheckpointError) as caught:
            load_checkpoint(text)
        assert f"checkpoint '{text}' " in str(caught.value)
        assert message in str(caught.value)


@pytest.mark.parametrize(("damage", "message"), BREAKS)
def test_a_bad_checkpoint_is_refused_with_the_reason(
    tmp_path: Path, checkpoint: Path, damage: Callable[[Path], object], message: str
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(checkpoint, broken)
    damage(broken)
    with pytest.raises(CheckpointError, match=message) as error:
        load_checkpoint(broken)
    assert "\n" not in str(error.value)


def test_a_checkpoint_loads_in_float32_whatever_it_was_saved_in(tmp_path: Path) -> None:
    directory = save_tiny_checkpoint(tmp_path)
    loaded = load_checkpoint(directory)
    loaded.model.half().save_pretrained(directory)
    again = load_checkpoint(directory)
    assert {part.dtype for part in again.model.parameters()} == {torch.float32}
    assert not again.model.training
    assert again.sha256 != loaded.sha256


def test_the_digest_is_that_of_the_weights(checkpoint: Path) -> None:
    loaded = load_checkpoint(checkpoint)
    assert loaded.sha256 == digest(read_weights(checkpoint).files)
    assert loaded.bytes == (checkpoint / "model.safetensors").stat().st_size


def test_the_task_follows_from_the_head(tmp_path: Path) -> None:
    names = [
        load_checkpoint(save_tiny_checkpoint(tmp_path / str(labels), tiny_config(labels=labels))).task.name
        for labels in (1, 2, 3)
    ]
    assert names == ["regression", "classification", "classification"]
    assert tiny_tokenizer().tokenize("word1 word2") == ["word1", "word2"]
