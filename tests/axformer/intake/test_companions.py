"""What goes along with a checkpoint into its results: everything harmless as it came, and nothing that a library obeys."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axformer.architectures.registry import architecture_of
from axformer.intake.admission import admit
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.companions import companion_files, notes_in
from axformer.intake.limits import COMPANION_BYTES, NOTES_BYTES
from axformer.model.compact import compact_config_class
from tests.tiny_models import tiny_config

BERT = architecture_of("bert")
NOTES: dict[str, Any] = {
    "another_library": {"activation_fn": "torch.nn.modules.activation.Sigmoid", "version": "4.0.1"},
    "custom_labels_note": "0 is négative, 😀, \ud800",
    "finetuning_task": "sst2",
    "task_specific_params": {"a": [1, 2.5, 1e-300, None, True]},
    "team.ticket-7": 10**40,
}
OBEYED: dict[str, Any] = {
    "auto_map": {"AutoModel": "evil.Model"},
    "custom_pipelines": {"a": {"impl": "evil.Pipe"}},
    "trust_remote_code": True,
    "_attn_implementation": "someone/kernel",
    "attn_implementation": "someone/kernel",
    "experts_implementation": "someone/kernel",
    "transformers_weights": "../../other.safetensors",
    "torch_dtype": "float64",
    "dtype": "float64",
    "name_or_path": "/etc",
    "_name_or_path": "/home/me",
    "pruned_heads": {"0": [0]},
    "quantization_config": {},
    "text_config": {"hidden_size": 1},
    "rope_scaling": {"type": "linear"},
    "layer_types": ["none"],
    "to_dict": "evil",
    "from_pretrained": "evil",
    "model_type": "llama",
    "output_attentions": True,
    "axformer_layers": [],
    "__class__": "evil",
    "a key": 1,
    "k" * 65: 1,
    "long": "x" * NOTES_BYTES,
}
"""Keys that a library obeys, or that are no names, or too large."""


def test_harmless_keys_go_along_with_their_values_and_no_others() -> None:
    assert notes_in(tiny_config().to_dict() | NOTES | OBEYED, BERT) == NOTES


def test_notes_are_bounded_together() -> None:
    notes = notes_in({f"note{number}": "x" * 1000 for number in range(1000)}, BERT)
    assert 60 < len(notes) < 66
    assert list(notes) == [f"note{number}" for number in range(len(notes))]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from([*NOTES, *OBEYED, *dir(compact_config_class("bert"))]) | st.from_regex(
    r"[a-z]\w{0,20}", fullmatch=True
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(names, values, max_size=5))
def test_whatever_goes_along_changes_nothing_of_the_model(keys: dict[str, Any]) -> None:
    own = json.loads(tiny_config().to_json_string())
    config_class = compact_config_class("bert")
    plain = config_class.from_dict(dict(own))
    loaded = config_class.from_dict(notes_in(keys | own, BERT) | own)
    assert {key: value for key, value in loaded.to_dict().items() if key in plain.to_dict()} == plain.to_dict()
    assert loaded._attn_implementation is None
    assert loaded.get_text_config() is loaded


def test_no_library_sees_notes_or_templates_while_a_checkpoint_is_loaded(checkpoint: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | NOTES))
    (copy / "chat_template.jinja").write_text("{{ messages }}")
    loaded = load_checkpoint(copy)
    assert not any(hasattr(loaded.model.config, name) for name in NOTES)
    assert loaded.tokenizer.chat_template is None
    assert loaded.companions.notes == NOTES == admit(copy).notes
    assert loaded.companions.files["chat_template.jinja"] == b"{{ messages }}"


TOO_LARGE = "x" * (COMPANION_BYTES + 1)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("chat_template.jinja", TOO_LARGE.encode()),
        ("chat_template.jinja", b"\xff\xfe"),
        ("generation_config.json", b"{"),
        ("generation_config.json", b"[]"),
        ("generation_config.json", f'{{"a": "{TOO_LARGE}"}}'.encode()),
        ("generation_config.json", b'{"a": 1, "a": 2}'),
    ],
)
def test_what_is_damaged_or_too_large_is_left_out(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert companion_files(tmp_path) == {}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=40), st.integers(), st.text(max_size=5))
def test_settings_and_templates_stay_to_the_last_byte(tmp_path: Path, template: str, tokens: int, space: str) -> None:
    generation = json.dumps({"_from_model_config": True, "max_new_tokens": tokens, "note": space}).encode() + b"\n\n"
    (tmp_path / "chat_template.jinja").write_bytes(template.encode())
    (tmp_path / "generation_config.json").write_bytes(generation)
    assert companion_files(tmp_path) == {
        "chat_template.jinja": template.encode(),
        "generation_config.json": generation,
    }


def test_settings_that_a_loader_obeys_are_taken_out(tmp_path: Path) -> None:
    hostile = {"auto_map": {"a": "evil"}, "_evil": 1, "save_pretrained": "evil", "custom_generate": "evil"}
    path = tmp_path / "generation_config.json"
    path.write_text(json.dumps({"top_k": 7, "_from_model_config": False} | hostile))
    assert json.loads(companion_files(tmp_path)[path.name]) == {"top_k": 7, "_from_model_config": False}
