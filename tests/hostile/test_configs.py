"""Configurations that ask for too much, for another file, or for code."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axformer.errors import CheckpointError
from axformer.intake.admission import admit
from axformer.intake.checkpoint import load_checkpoint
from tests.hostile.checkpoints import changed_json, must_be_refused, written

CONFIG = "config.json"


def deep(depth: int) -> str:
    """A configuration with an object in an object, and so on."""
    return '{"model_type": "bert", "a": ' + "[" * depth + "]" * depth + "}"


TEXTS: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "config.json cannot be read"),
    "no JSON": ("{'model_type': 'bert'}", "config.json cannot be read"),
    "no UTF-8": (b'{"model_type": "\xff"}', "is not UTF-8"),
    "a list": ("[]", "config.json holds no object"),
    "a number": ("1", "config.json holds no object"),
    "nothing": ("null", "config.json holds no object"),
    "two objects": ("{}{}", "config.json cannot be read"),
    "a key twice": ('{"model_type": "bert", "model_type": "gpt2"}', "the key 'model_type' twice"),
    "nested a little": (deep(40), "nested more than 32 deep"),
    "nested much": (deep(100_000), "nested more than 32 deep"),
    "no number": ('{"model_type": "bert", "layer_norm_eps": NaN}', "NaN, which is not a number"),
    "infinite": ('{"model_type": "bert", "layer_norm_eps": -Infinity}', "-Infinity, which is not a number"),
    "a long number": ('{"model_type": "bert", "vocab_size": ' + "9" * 5000 + "}", "config.json cannot be read"),
    "large": ('{"a": "' + "x" * (4 << 20) + '"}', "more than 4194304 bytes"),
    "no family": ("{}", "names no model_type"),
    "another family": ('{"model_type": "longformer"}', "models of type 'longformer' are not supported"),
    "a family that is not a text": ('{"model_type": {"a": 1}}', "names no model_type"),
    "a family as a path": ('{"model_type": "../../bert"}', "are not supported"),
}


def test_a_configuration_that_is_none_is_refused(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for name, (text, message) in TEXTS.items():
        with subtests.test(name):
            must_be_refused(whole, tmp_path_factory.mktemp("case"), written(CONFIG, text), message)


VALUES: dict[str, tuple[dict[str, object], str]] = {
    "architectures a text": ({"architectures": "BertForSequenceClassification"}, "architectures in config.json is not a list"),
    "architectures of numbers": ({"architectures": [1]}, "architectures in config.json is not a list"),
    "architectures of another": ({"architectures": ["Evil"]}, "no supported head"),
    "architectures none": ({"architectures": None}, "no supported head"),
    "layers many": ({"num_hidden_layers": 97}, "num_hidden_layers=97 is more than the 96"),
    "layers beyond memory": ({"num_hidden_layers": 10**12}, "is more than the 96"),
    "layers none": ({"num_hidden_layers": 0}, "layers=0; a model has at least 1"),
    "layers negative": ({"num_hidden_layers": -3}, "layers=-3; a model has at least 1"),
    "layers a text": ({"num_hidden_layers": "3"}, "cannot be loaded: config.json"),
    "layers a fraction": ({"num_hidden_layers": 3.5}, "cannot be loaded: config.json"),
    "layers a truth": ({"num_hidden_layers": True}, "cannot be loaded|does not hold"),
    "layers more than there are": ({"num_hidden_layers": 6}, "does not hold all weights"),
    "heads none": ({"num_attention_heads": 0}, "heads=0; a model has at least 1"),
    "heads that do not divide": ({"num_attention_heads": 5}, "describes no BertForSequenceClassification"),
    "heads many": ({"num_attention_heads": 1024}, "is more than the 256"),
    "hidden wide": ({"hidden_size": 8196}, "is more than the 8192"),
    "hidden wider than the weights": ({"hidden_size": 8192, "intermediate_size": 65536}, "does not hold all weights"),
    "hidden negative": ({"hidden_size": -32}, "hidden_size=-32; a model has at least 1"),
    "hidden a list": ({"hidden_size": [32]}, "cannot be loaded: config.json"),
    "hidden an object": ({"hidden_size": {"a": 32}}, "cannot be loaded: config.json"),
    "inner huge": ({"intermediate_size": 10**7}, "is more than the 65536"),
    "vocabulary huge": ({"vocab_size": 2_000_000}, "is more than the 1000000"),
    "vocabulary larger than the weights": ({"vocab_size": 1_000_000}, "does not hold all weights"),
    "vocabulary smaller than the weights": ({"vocab_size": 10}, "does not hold all weights|cannot be loaded"),
    "positions huge": ({"max_position_embeddings": 10**8}, "is more than the 10000000"),
    "positions more than the weights": ({"max_position_embeddings": 10**7}, "does not hold all weights"),
    "types huge": ({"type_vocab_size": 10**9}, "is more than the 10000000"),
    "activation unknown": ({"hidden_act": "import os"}, "describes no BertForSequenceClassification"),
    "activation long": ({"hidden_act": "a" * 1000}, "longer than 512 characters"),
    "activation an object": ({"hidden_act": {"a": 1}}, "cannot be loaded: config.json"),
    "dropout impossible": ({"hidden_dropout_prob": 7.0}, "describes no BertForSequenceClassification"),
    "eps overflowing": ({"layer_norm_eps": 10.0**300}, "is more than the 1e"),
    "labels many": ({"id2label": {str(n): "a" for n in range(100_001)}}, "at most 100000 are taken"),
    "labels by number": ({"num_labels": 10**6}, "is more than the 100000"),
    "labels with other keys": ({"id2label": {"one": "a", "two": "b"}}, "cannot be loaded: config.json"),
    "labels a list": ({"id2label": ["a", "b"]}, "cannot be loaded: config.json"),
    "labels half characters": ({"id2label": {"0": "\ud800", "1": "b"}}, "or no text"),
    "labels more than the weights": ({"id2label": {str(n): str(n) for n in range(50)}}, "does not hold all weights"),
    "pad token far away": ({"pad_token_id": 10**6}, "describes no|cannot be loaded|pads with token"),
    "quantized": ({"quantization_config": {"quant_method": "gptq"}}, "is quantized"),
    "heads removed": ({"pruned_heads": {"0": [0, 1]}}, "has heads removed by prune_heads"),
    "compressed": ({"compression_config": {"format": "pack"}}, "is quantized"),
}  # fmt: skip


@pytest.mark.slow
def test_a_value_out_of_bounds_is_refused(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for name, (changes, message) in VALUES.items():
        with subtests.test(name):
            must_be_refused(whole, tmp_path_factory.mktemp("case"), changed_json(CONFIG, **changes), message)


def changed(whole: Path, tmp_path: Path, **changes: object) -> Path:
    """A copy of a checkpoint with another configuration."""
    copy = tmp_path / "changed"
    shutil.copytree(whole, copy)
    changed_json(CONFIG, **changes)(copy)
    return copy


IGNORED: dict[str, object] = {
    "auto_map": {"AutoConfig": "evil.Config", "AutoModelForSequenceClassification": "evil.Model"},
    "trust_remote_code": True,
    "custom_pipelines": {"text": {"impl": "evil.Pipe", "pt": ["Evil"]}},
    "attn_implementation": "someone/kernel",
    "_attn_implementation": "someone/kernel",
    "_attn_implementation_internal": "someone/kernel",
    "_experts_implementation_internal": "someone/kernel",
    "experts_implementation": "someone/kernel",
    "_name_or_path": "../../etc",
    "name_or_path": "/etc",
    "transformers_weights": "../../other.safetensors",
    "distributed_config": {"tp": 8},
    "fusion_config": {"a": "b"},
    "per_layer_config": {"0": {"hidden_size": 1}},
    "dtype": "load",
    "torch_dtype": "load",
    "chunk_size_feed_forward": 7,
    "output_attentions": True,
    "output_hidden_states": True,
    "return_dict": False,
    "gradient_checkpointing": True,
    "is_encoder_decoder": True,
    "forward": "evil",
    "to_dict": "evil",
    "__class__": "evil",
    "base_model_tp_plan": {"a": "b"},
    "finetuning_task": "sst2",
    "task_specific_params": {"a": {"b": 1}},
    "tokenizer_class": "EvilTokenizer",
    "unknown": {"deep": [1, 2, {"er": "x" * 100_000}]},
}


def test_a_key_that_does_not_describe_the_model_changes_nothing(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    plain = admit(whole)
    for key, value in IGNORED.items():
        with subtests.test(key):
            loaded = admit(changed(whole, tmp_path_factory.mktemp("case"), **{key: value}))
            assert loaded.config.to_dict() == plain.config.to_dict()
            assert loaded.config._attn_implementation is None


def test_with_all_of_them_the_model_loads_as_without(whole: Path, tmp_path: Path) -> None:
    plain, loaded = load_checkpoint(whole), load_checkpoint(changed(whole, tmp_path, **IGNORED))
    assert loaded.sha256 == plain.sha256
    described = [one.model.config.to_dict() | {"_name_or_path": None} for one in (loaded, plain)]
    assert described[0] == described[1]
    assert type(loaded.model) is type(plain.model)


@pytest.mark.parametrize("name", ["modeling_evil.py", "configuration_evil.py", "tokenization_evil.py", "handler.py"])
def test_code_beside_a_checkpoint_is_never_run(whole: Path, tmp_path: Path, name: str) -> None:
    module, mark = name.removesuffix(".py"), tmp_path / "ran"
    named = {"AutoConfig": f"{module}.A", "AutoTokenizer": [f"{module}.B", None], "AutoModel": f"{module}.C"}
    copy = changed(whole, tmp_path, auto_map=named)
    changed_json("tokenizer_config.json", auto_map=named)(copy)
    (copy / name).write_text(f"from pathlib import Path\nPath({str(mark)!r}).write_text('x')\n")
    load_checkpoint(copy)
    assert not mark.exists()


STRANGERS: dict[str, Callable[[Path], object]] = {
    "settings of generation": lambda directory: (directory / "generation_config.json").write_text("{"),
    "a pickle": lambda directory: (directory / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR."),
    "training arguments": lambda directory: (directory / "training_args.bin").write_bytes(b"\x80"),
    "a chat template": lambda directory: (directory / "chat_template.jinja").write_text("{{ ''.__class__ }}"),
    "a pipe": lambda directory: os.mkfifo(directory / "optimizer.pt"),
    "another family's weights": lambda directory: (directory / "tf_model.h5").write_bytes(b"x"),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_other_files_beside_a_checkpoint_are_left_alone(whole: Path, tmp_path: Path, name: str) -> None:
    copy = changed(whole, tmp_path)
    STRANGERS[name](copy)
    assert load_checkpoint(copy).sha256 == load_checkpoint(whole).sha256


def test_pickled_weights_are_refused_with_the_way_to_convert_them(whole: Path, tmp_path: Path) -> None:
    def pickle_alone(directory: Path) -> None:
        (directory / "model.safetensors").rename(directory / "pytorch_model.bin")

    must_be_refused(whole, tmp_path, pickle_alone, r"pickled weights are not read, .*save_pretrained\(DIR\)")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "hidden_act", "id2label", "label2id", "num_labels"),
    *("problem_type", "pad_token_id", "layer_norm_eps", "is_decoder", "architectures", "classifier_dropout", "_evil"),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=6), values, min_size=1, max_size=4))
def test_any_configuration_is_taken_or_refused(whole: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    known = json.loads((whole / CONFIG).read_text())
    (tmp_path / "model.safetensors").write_bytes((whole / "model.safetensors").read_bytes())
    (tmp_path / CONFIG).write_text(json.dumps(known | changes))
    try:
        admitted = admit(tmp_path)
    except CheckpointError:
        return
    assert admitted.config.model_type == "bert"
    assert not hasattr(admitted.config, "_evil")
