"""Results say the same in the words of transformers 4 and of transformers 5."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForSequenceClassification

from axformer.architectures.registry import ARCHITECTURES
from axformer.forms.files import common_keys, older_keys, write_model
from axformer.forms.stock import stock
from axformer.intake.checkpoint import Checkpoint, from_memory, load_checkpoint
from axformer.model.compact import compact
from axformer.plan.plan import Plan
from tests.tiny_families import DIMENSIONS, tiny_family_config, tiny_family_tokenizer

OLDER = os.environ.get("AXFORMER_TRANSFORMERS_4")
"""A Python with transformers 4, where there is one."""
LONG = {"short_factor": [1.0] * 4, "long_factor": [3.0] * 4, "original_max_position_embeddings": 8}
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
SCALED: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"factor": 2.0},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 16},
    "llama3": {"factor": 8.0, **LLAMA3},
    "longrope": {"factor": 4.0, **LONG},
}
TEXTS = ["word1 word2", "word3 word4 word5 word6 word7 word8 word9 word10 word11 word12 word13"]


def written(directory: Path, family: str, dropped: tuple[int, ...] = (1,), **changes: Any) -> tuple[Checkpoint, Any]:
    """The stock result of a plan, and its model."""
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(tiny_family_config(family, **changes)).eval()
    checkpoint = from_memory(model, tiny_family_tokenizer(family))
    plan = Plan.full(DIMENSIONS).dropping(dropped)
    small = compact(checkpoint.model, checkpoint.architecture, plan)
    ordinary = stock(small, checkpoint.head.model_class, checkpoint.architecture, plan)
    write_model(ordinary, checkpoint.companions, directory)
    return checkpoint, ordinary


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_keys_by_their_common_names_say_the_same_and_none_comes_twice_for_a_reader(family: str) -> None:
    config = tiny_family_config(family)
    known = config.to_dict()
    common = common_keys(known, config.attribute_map)
    assert type(config)(**known, **common).to_dict() == known
    for names in (("hidden_size", "n_embd"), ("num_hidden_layers", "n_layer")):
        assert sum(name in known or name in common for name in names) == 1, names
    assert common == {name: getattr(config, name) for name in common}
    assert ("max_position_embeddings" in known or "max_position_embeddings" in common) is (family != "xlnet")


@pytest.mark.parametrize("family", ["llama", "qwen3"])
@pytest.mark.parametrize("kind", SCALED)
def test_rotary_positions_stand_there_in_both_spellings(tmp_path: Path, family: str, kind: str) -> None:
    rope = {"rope_type": kind, "rope_theta": 200.0, **SCALED[kind]}
    _, ordinary = written(tmp_path, family, rope_parameters=rope)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["rope_theta"] == 200.0
    assert config["torch_dtype"] == config["dtype"] == "float32"
    told = config["rope_scaling"]
    if kind == "default":
        assert told is None
    else:
        assert told["type"] == told["rope_type"] == kind
        assert SCALED[kind].items() <= told.items()
    older = {key: value for key, value in config.items() if key not in ("rope_parameters", "dtype")}
    for keys in (config, older):  # transformers 5 reads both, and either
        (tmp_path / "config.json").write_text(json.dumps(keys))
        again = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
        ids = torch.arange(5, 25)[None]
        torch.testing.assert_close(again(ids).logits, ordinary(ids).logits, rtol=1e-5, atol=1e-5)
        assert load_checkpoint(tmp_path).model.config.rope_parameters["rope_theta"] == 200.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["full_attention", "sliding_attention"]), min_size=1, max_size=12))
def test_the_order_of_layers_is_the_one_of_both_or_none(kinds: list[str]) -> None:
    """Transformers 4 knows the order by a number alone; where there is none, it must not take its default."""
    rope = {"full_attention": {"rope_theta": 3.0}, "sliding_attention": {"rope_theta": 2.0}}
    known = {"rope_parameters": rope, "layer_types": kinds, "global_attn_every_n_layers": 3}
    older = older_keys(known)
    assert (older["global_rope_theta"], older["local_rope_theta"]) == (3.0, 2.0)
    step = older["global_attn_every_n_layers"]
    whole = [kind == "full_attention" for kind in kinds]
    if step is None:
        assert not any(whole == [place % one == 0 for place in range(len(kinds))] for one in range(1, 13))
    else:
        assert whole == [place % step == 0 for place in range(len(kinds))]


def test_a_dropped_layer_changes_the_order_of_the_others(tmp_path: Path) -> None:
    """The number that was left from the whole model is not that of the result."""
    written(tmp_path, "modernbert", dropped=(1, 3))
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["layer_types"] == ["full_attention", "full_attention"]
    assert config["global_attn_every_n_layers"] == 1
    assert AutoConfig.from_pretrained(tmp_path).layer_types == config["layer_types"]


@pytest.mark.parametrize("family", ["bert", "deberta-v2", "gpt2", "llama", "roberta", "xlnet"])
def test_settings_of_tokenizers_are_such_as_both_know(tmp_path: Path, family: str) -> None:
    checkpoint, _ = written(tmp_path, family, dropped=())
    told = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert told["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert told["padding_side"] == ("left" if family == "xlnet" else "right")
    assert told["model_input_names"] == checkpoint.tokenizer.model_input_names
    assert checkpoint.tokenizer.special_tokens_map.items() <= told.items()
    assert "extra_special_tokens" not in told


PROGRAM = """
import json, sys, torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
tokenizer, model = AutoTokenizer.from_pretrained(sys.argv[1]), AutoModelForSequenceClassification.from_pretrained(sys.argv[1])
inputs = [tokenizer(text, return_tensors="pt") for text in json.loads(sys.argv[2])]
with torch.no_grad():
    print(json.dumps([model.eval()(**row).logits[0].tolist() for row in inputs]))
"""


@pytest.mark.skipif(OLDER is None, reason="AXFORMER_TRANSFORMERS_4 names no Python with transformers 4")
@pytest.mark.parametrize("family", ["albert", "bert", "deberta-v2", "gpt2", "modernbert", "qwen3", "xlnet", *SCALED])
def test_transformers_4_computes_the_same(tmp_path: Path, family: str) -> None:
    assert OLDER is not None
    scaled = {"rope_parameters": {"rope_type": family, "rope_theta": 200.0, **SCALED.get(family, {})}}
    name, changes = ("llama", scaled) if family in SCALED else (family, {})
    checkpoint, ordinary = written(tmp_path, name, dropped=(1, 3), **changes)
    ran = subprocess.run(
        [OLDER, "-c", PROGRAM, tmp_path, json.dumps(TEXTS)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    with torch.no_grad():
        expected = [ordinary(**checkpoint.tokenizer(text, return_tensors="pt")).logits[0] for text in TEXTS]
    torch.testing.assert_close(torch.tensor(json.loads(ran.stdout)), torch.stack(expected), rtol=1e-4, atol=1e-4)
