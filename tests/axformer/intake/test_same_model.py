"""What goes through intake is the very model that transformers loads from the same files, for every family and head."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, PreTrainedConfig

from axformer.architectures.heads import Head
from axformer.architectures.registry import ARCHITECTURES
from axformer.intake.admission import admit, loadable
from axformer.intake.checkpoint import load_checkpoint
from axformer.model.compact import compact
from axformer.plan.plan import Plan
from tests.tiny_families import tiny_family_model, tiny_family_tokenizer

CASES = [(family, head) for family, architecture in ARCHITECTURES.items() for head in architecture.heads]


def described(config: PreTrainedConfig) -> dict[str, Any]:
    """All that a configuration says of its model."""
    return {key: value for key, value in config.to_dict().items() if key not in ("dtype", "_name_or_path")}


@pytest.mark.parametrize(("family", "head"), CASES, ids=[head.name for _, head in CASES])
def test_the_configuration_is_the_one_of_the_file(tmp_path: Path, family: str, head: Head) -> None:
    tiny_family_model(family, head.auto_class).save_pretrained(tmp_path)
    assert described(admit(tmp_path).config) == described(type(admit(tmp_path).config).from_pretrained(tmp_path))


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_weights_and_tokens_are_those_of_the_files(tmp_path: Path, family: str) -> None:
    model = tiny_family_model(family)
    model.save_pretrained(tmp_path, max_shard_size="50KB")  # several files
    tiny_family_tokenizer(family).save_pretrained(tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    admitted = admit(tmp_path)
    with loadable(admitted) as directory:
        loaded = admitted.head.model_class.from_pretrained(directory, config=admitted.config, use_safetensors=True)
        tokenizer = AutoTokenizer.from_pretrained(directory)
    assert not directory.exists()
    kept = loaded.state_dict()
    assert all(torch.equal(weight, kept[name]) for name, weight in model.state_dict().items())
    plain = AutoTokenizer.from_pretrained(tmp_path)
    texts = ["word1 word2 nobody", "WORD3, word4!"]
    assert tokenizer(texts)["input_ids"] == plain(texts)["input_ids"]
    assert tokenizer.padding_side == plain.padding_side


LEGACY = {
    "bert": {"gradient_checkpointing": False, "position_embedding_type": "absolute", "torch_dtype": "float32"},
    "deberta-v2": {"pooler_hidden_size": 32, "conv_act": "gelu", "conv_kernel_size": 0, "layer_norm_eps": 1e-7},
    "distilbert": {"tie_weights_": True, "output_past": True},
    "gpt2": {"n_ctx": 64, "task_specific_params": {"text-generation": {"do_sample": True}}},
    "llama": {"rope_theta": 5000.0, "rope_scaling": None, "pretraining_tp": 1},
    "roberta": {"output_past": True, "eos_token_id": 2},
}
"""What older versions of transformers wrote."""


@pytest.mark.parametrize("family", LEGACY)
def test_what_older_versions_wrote_is_read_as_transformers_reads_it(tmp_path: Path, family: str) -> None:
    tiny_family_model(family).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    known = json.loads(path.read_text())
    if "rope_theta" in LEGACY[family]:
        del known["rope_parameters"]
    path.write_text(json.dumps(known | LEGACY[family]))
    config = admit(tmp_path).config
    plain = type(config).from_pretrained(tmp_path)
    unknown = {
        "gradient_checkpointing",
        "position_embedding_type",
        "tie_weights_",
        "output_past",
        "n_ctx",
        "task_specific_params",
    }
    assert described(config) == {key: value for key, value in described(plain).items() if key not in unknown}


@pytest.mark.parametrize("family", [name for name, architecture in ARCHITECTURES.items() if architecture.causal])
def test_a_decoder_that_looks_both_ways_goes_on_doing_so(tmp_path: Path, family: str) -> None:
    tiny_family_model(family).save_pretrained(tmp_path)
    tiny_family_tokenizer(family).save_pretrained(tmp_path)
    path, ids = tmp_path / "config.json", torch.tensor([[9, 5, 12, 7]])
    causal = tiny_family_model(family)(ids).logits
    path.write_text(json.dumps(json.loads(path.read_text()) | {"is_causal": False}))
    checkpoint = load_checkpoint(tmp_path)
    plain = checkpoint.head.model_class.from_pretrained(tmp_path).eval()(ids).logits
    assert not torch.allclose(plain, causal, atol=1e-3)
    small = compact(checkpoint.model, checkpoint.architecture, Plan.full(checkpoint.dimensions))
    for model in (checkpoint.model, small):
        torch.testing.assert_close(model(ids, attention_mask=torch.ones_like(ids)).logits, plain, atol=1e-5, rtol=1e-4)
    assert small.config.to_dict()["is_causal"] is False
