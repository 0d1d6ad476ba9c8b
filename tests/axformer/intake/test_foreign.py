"""What people point at instead of a model is recognised, and answered with what makes a model of it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertModel

from axformer.client.packing import packed
from axformer.errors import CheckpointError
from axformer.intake.checkpoint import digest, load_checkpoint
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_tokenizer

FILE = "model.safetensors"
ADAPTER = {"base_model.model.bert.encoder.layer.0.attention.self.query.lora_A.weight": torch.zeros(2, 32)}
Change = Callable[[Path], object]


def instead(*names: str, config: bool = True) -> Change:
    """Other files in the place of the weights, and maybe of the configuration."""

    def change(directory: Path) -> None:
        for name in (FILE, *(() if config else ("config.json",))):
            (directory / name).unlink()
        for name in names:
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}" if path.suffix == ".json" else "x")

    return change


def adapter(kind: str, *, config: bool) -> Change:
    """Only what PEFT saves."""

    def change(directory: Path) -> None:
        instead(config=config)(directory)
        save_file(ADAPTER, directory / "adapter_model.safetensors", {"format": "pt"})
        (directory / "adapter_config.json").write_text(json.dumps({"peft_type": kind}))

    return change


def moved(*places: str) -> Change:
    """The checkpoint lies in directories below."""

    def change(directory: Path) -> None:
        files = list(directory.iterdir())
        for place in places:
            (directory / place).mkdir()
            for path in files:
                shutil.copy(path, directory / place)
        for path in files:
            path.unlink()

    return change


def sentence_transformers(directory: Path) -> None:
    moved("0_Transformer")(directory)
    (directory / "1_Pooling").mkdir()
    (directory / "modules.json").write_text("[]")


def headless(directory: Path) -> None:
    BertModel(tiny_config()).save_pretrained(directory)


def headless_adapter(directory: Path) -> None:
    headless(directory)
    adapter("LORA", config=True)(directory)


def with_weights(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Change:
    def rewrite(directory: Path) -> None:
        save_file(change(load_file(directory / FILE)), directory / FILE, {"format": "pt"})

    return rewrite


def unmerged(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """LoRA around every query, saved before it was merged."""
    found = {name.replace("self.query.", "self.query.base_layer."): weight for name, weight in tensors.items()}
    return found | {"bert.encoder.layer.0.attention.self.query.lora_A.default.weight": torch.zeros(2, 32)}


def kept_head(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """PEFT's copy of a head that was trained beside an adapter."""
    return tensors | {"classifier.modules_to_save.default.weight": torch.zeros(2, 32)}


def gathered_by_nobody(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: torch.empty(0) if "query" in name else weight for name, weight in tensors.items()}


def in_eight_bits(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: weight.to(torch.int8) if "query.weight" in name else weight for name, weight in tensors.items()}


def also(name: str) -> Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
    return lambda tensors: tensors | {name: torch.zeros(4)}


def change(directory: Path, **keys: object) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("../blobs/0")


def cache(directory: Path) -> None:
    """Make of a checkpoint the directory that the hub's own library keeps it in."""
    (directory / "snapshots" / "old").mkdir(parents=True)
    (directory / "snapshots" / "abc").mkdir()
    (directory / "refs").mkdir()
    (directory / "refs" / "main").write_text("abc\n")
    for path in [path for path in directory.iterdir() if path.is_file()]:
        path.rename(directory / "snapshots" / "abc" / path.name)


CASES: dict[str, tuple[Change, str]] = {
    "LoRA": (adapter("LORA", config=False), r"has no config\.json; it holds an adapter .* merge it \(merge_and"),
    "LoRA beside a configuration": (
        adapter("LORA", config=True),
        r"it holds an adapter .* merge it \(merge_and_unload\) and save",
    ),
    "LoRA of a model without head": (headless_adapter, r"merge it \(merge_and_unload\) and save"),
    "IA3": (adapter("IA3", config=False), r"merge it \(merge_and_unload\) and save"),
    "prefix tuning": (
        adapter("PREFIX_TUNING", config=False),
        "of a kind that no weight can take in; fine-tune the model whole",
    ),
    "prompts": (adapter("PROMPT_TUNING", config=True), "of a kind that no weight can take in"),
    "LoRA beside whole weights": (
        lambda directory: (directory / "adapter_config.json").write_text("{}"),
        r"an adapter lies beside its weights \(adapter_config\.json\): merge it .*; if it is merged .* remove its files",
    ),
    "the weights of an adapter beside whole ones": (
        lambda directory: save_file(ADAPTER, directory / "adapter_model.safetensors"),
        r"an adapter lies beside its weights \(adapter_model\.safetensors\): merge it",
    ),
    "pickled adapter": (instead("adapter_config.json", "adapter_model.bin", config=False), "it holds an adapter"),
    "LoRA not merged": (
        with_weights(unmerged),
        r"an adapter .* not merged into the model; merge it \(merge_and_unload\) and",
    ),
    "head beside an adapter": (with_weights(kept_head), "classifier.modules_to_save.default.weight"),
    "pickles": (
        instead("pytorch_model.bin"),
        "pickled weights are not read, save the model again with save_pretrained",
    ),
    "pickles with index": (
        instead("pytorch_model-00001-of-00002.bin", "pytorch_model.bin.index.json"),
        "pickled weights are not read",
    ),
    "Lightning": (instead("epoch=1.ckpt", config=False), "pickled weights are not read"),
    "TensorFlow": (instead("tf_model.h5"), r"TensorFlow weights are not read; .*from_tf=True"),
    "TensorFlow 1": (
        instead("bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001"),
        "TensorFlow weights are not read",
    ),
    "Flax": (instead("flax_model.msgpack"), r"Flax weights are not read; .*from_flax=True"),
    "GGUF": (instead("model-q4_k_m.gguf"), "GGUF weights are not read; give the model that they were converted from"),
    "ONNX": (instead("model.onnx"), "ONNX models are not read; give the model that was exported"),
    "DeepSpeed": (instead("zero_to_fp32.py", "latest"), r"python zero_to_fp32\.py DIR NEW --safe_serialization"),
    "FSDP": (instead("__0_0.distcp", ".metadata"), "accelerate merge-weights DIR NEW"),
    "FSDP in one": (with_weights(also("bert._flat_param")), "save the model again with FULL_STATE_DICT"),
    "ZeRO-3": (
        with_weights(gathered_by_nobody),
        r"are empty, as DeepSpeed's ZeRO-3 .* stage3_gather_16bit_weights_on_model_save .* zero_to_fp32.py \(bert.*query.bias",
    ),
    "bitsandbytes": (with_weights(also("bert.encoder.layer.0.output.dense.SCB")), "are those of a quantized model"),
    "GPTQ": (with_weights(also("bert.encoder.layer.0.output.dense.qweight")), "are those of a quantized model"),
    "whole numbers": (
        with_weights(in_eight_bits),
        r"is quantized \(weights of type I8: bert.encoder.layer.0.attention.self.query",
    ),
    "a training run": (
        moved("checkpoint-900", "checkpoint-1500", "checkpoint-60"),
        "one of its checkpoints, newest .*/checkpoint-1500$",
    ),
    "a directory too high": (moved("model"), "a model lies in a directory below: give .*/model$"),
    "sentence-transformers": (
        sentence_transformers,
        "its modules are none; taken are Transformer, Pooling, Dense and Normalize",
    ),
    "no head": (
        headless,
        r"has no supported head \(architectures: BertModel\); fine-tune it as one of BertForSequence",
    ),
    "another name": (
        lambda directory: (directory / FILE).rename(directory / "model.fp16.safetensors"),
        r"nor model.safetensors.index.json; rename model\.fp16\.safetensors to model\.safetensors$",
    ),
    "two other names": (
        instead("a.safetensors", "model.fp16.safetensors", "consolidated.safetensors", "pytorch_model.bin"),
        r"rename a\.safetensors or model\.fp16\.safetensors to model\.safetensors$",
    ),
    "an index of another name": (
        instead("model.safetensors.index.fp16.json", "model.fp16-00001-of-00001.safetensors"),
        r"rename model\.safetensors\.index\.fp16\.json to model\.safetensors\.index\.json$",
    ),
    "shards without an index": (
        instead("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"),
        r"its shards lack their index: copy model\.safetensors\.index\.json too, or make one file of them",
    ),
    "some shards": (
        instead("model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"),
        r"2 of 3 shards and no index are there; copy the others",
    ),
    "a pointer": (
        lambda directory: (directory / FILE).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
        r"model\.safetensors is a pointer of git-lfs .*git lfs pull",
    ),
    "a page": (
        lambda directory: (directory / "config.json").write_text("<!DOCTYPE html><html>401</html>"),
        r"config\.json is a page of HTML; check the address",
    ),
    "a link": (
        lambda directory: dangling(directory / "tokenizer.json"),
        r"tokenizer\.json is a link to \.\./blobs/0, which is gone; copy the files with what they lead to",
    ),
    "the model of a result": (
        lambda directory: change(directory, model_type="axformer-bert"),
        r"is a part of a result; give that, .*, where one is taken, and elsewhere the checkpoint that the run began with",
    ),
    "an ONNX form": (
        lambda directory: [instead("model.onnx")(directory), change(directory, model_type=None)],
        r"config\.json names no model_type; ONNX models are not read; give the model that was exported",
    ),
    "a result": (
        lambda directory: [moved("model")(directory), (directory / "plan.json").write_text("{}")],
        r"it is the result of a run; give the checkpoint that the run began with",
    ),
    "a cache": (cache, r"it is a directory of the hub's cache: give .*/snapshots/abc$"),
    "a cache without a branch": (
        lambda directory: [cache(directory), shutil.rmtree(directory / "refs")],
        r"it is a directory of the hub's cache: give .*/snapshots/\w+$",
    ),
    "no weights": (instead(), "has neither model.safetensors nor .*save the model again with save_pretrained"),
    "nothing": (
        instead(config=False),
        r"has no config\.json; save the model again with save_pretrained, which writes config.json",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_model_is_told_with_the_remedy(tmp_path: Path, name: str) -> None:
    change, message = CASES[name]
    directory = save_tiny_checkpoint(tmp_path / "given")
    change(directory)
    with pytest.raises(CheckpointError, match=message) as error:
        load_checkpoint(directory)
    assert "\n" not in str(error.value)
    assert "copy it again" not in str(error.value)


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
def test_an_adapter_beside_whole_weights_is_told_before_anything_is_sent(tmp_path: Path, name: str) -> None:
    directory = save_tiny_checkpoint(tmp_path / "given")
    with packed(directory):
        (directory / name).write_bytes(b"{}")
    with (
        pytest.raises(CheckpointError, match=f"no checkpoint to send: an adapter lies beside its weights .{name}"),
        packed(directory),
    ):
        pass


@pytest.mark.parametrize("heads", [{"0": [3]}, {"1": [0, 2]}])
def test_heads_that_were_removed_are_told_by_the_key(tmp_path: Path, heads: dict[str, list[int]]) -> None:
    path = save_tiny_checkpoint(tmp_path) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pruned_heads": heads}))
    with pytest.raises(CheckpointError, match=r"config\.json has pruned_heads: .*give the model as it was before"):
        load_checkpoint(tmp_path)


def test_no_removed_heads_are_none(tmp_path: Path) -> None:
    path = save_tiny_checkpoint(tmp_path) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pruned_heads": {}}))
    loaded = load_checkpoint(tmp_path)
    assert loaded.dimensions.heads == loaded.model.config.num_attention_heads


def test_what_lies_beside_the_weights_counts_for_nothing(tmp_path: Path) -> None:
    directory = save_tiny_checkpoint(tmp_path)
    alone = load_checkpoint(directory)
    for name in ("optimizer.safetensors", "aaa.safetensors"):
        save_file(ADAPTER, directory / name)
    (directory / "pytorch_model.bin").write_bytes(b"pickled")
    (directory / "checkpoint-5").mkdir()
    beside = load_checkpoint(directory)
    assert (beside.sha256, beside.bytes) == (alone.sha256, alone.bytes)
    assert (alone.sha256, alone.bytes) == (digest([directory / FILE]), (directory / FILE).stat().st_size)
    assert tiny_tokenizer().tokenize("word1") == beside.tokenizer.tokenize("word1")
