"""Weights are read by the names of the model, through what wrappers put before them; what nothing reads is told by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForTokenClassification

from axformer.architectures.heads import Head
from axformer.architectures.registry import ARCHITECTURES
from axformer.errors import CheckpointError
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.weight_names import _WRAPPERS, unread, unwrapped
from tests.tiny_families import tiny_family_model, tiny_family_tokenizer
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_model

Tensors = dict[str, torch.Tensor]
FILE = "model.safetensors"
CASES = [(family, head) for family, architecture in ARCHITECTURES.items() for head in architecture.heads]
AROUND = ("module.", "_orig_mod.", "_orig_mod.module.", "model.", "base_model.", "base_model.model.", "net._orig_mod.")


def rewritten(directory: Path, change: Callable[[Tensors], Tensors]) -> Path:
    """The checkpoint with other weights."""
    weights = change(load_file(directory / FILE))
    save_file({name: weight.clone() for name, weight in weights.items()}, directory / FILE, {"format": "pt"})
    return directory


def saved(directory: Path, family: str = "bert", auto_class: Any = None) -> Path:
    """A tiny checkpoint of a family."""
    model = tiny_family_model(family) if auto_class is None else tiny_family_model(family, auto_class)
    model.save_pretrained(directory)
    tiny_family_tokenizer(family).save_pretrained(directory)
    return directory


def refused(directory: Path) -> str:
    with pytest.raises(CheckpointError) as error:
        load_checkpoint(directory)
    assert "\n" not in str(error.value)
    return str(error.value)


def wrapped(prefix: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {prefix + name: weight for name, weight in tensors.items()}


def compiled_layers(tensors: Tensors) -> Tensors:
    """Every layer was compiled by itself."""
    return {name.replace(".attention.", "._orig_mod.attention."): weight for name, weight in tensors.items()}


def beside_a_loss(tensors: Tensors) -> Tensors:
    return wrapped("model.")(tensors) | {"criterion.weight": torch.ones(2)}


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "modernbert"])
@pytest.mark.parametrize(
    "change",
    [*map(wrapped, AROUND), compiled_layers, beside_a_loss],
    ids=[*AROUND, "compiled layers", "beside a loss"],
)
def test_weights_are_read_through_wrappers(tmp_path: Path, family: str, change: Callable[[Tensors], Tensors]) -> None:
    directory = rewritten(saved(tmp_path, family), change)
    loaded = load_checkpoint(directory)
    found, weights = loaded.model.state_dict(), tiny_family_model(family).state_dict()
    assert all(torch.equal(weight, found[name]) for name, weight in weights.items())


def test_wrapped_weights_are_read_from_shards(tmp_path: Path) -> None:
    saved(tmp_path)
    tensors = wrapped("_orig_mod.")(load_file(tmp_path / FILE))
    (tmp_path / FILE).unlink()
    places = {name: f"part-{place % 2}.safetensors" for place, name in enumerate(sorted(tensors))}
    for file in set(places.values()):
        save_file({name: tensors[name] for name in places if places[name] == file}, tmp_path / file, {"format": "pt"})
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    loaded = load_checkpoint(tmp_path)
    weights = tiny_family_model("bert").state_dict()
    assert all(torch.equal(weight, loaded.model.state_dict()[name]) for name, weight in weights.items())
    assert loaded.bytes == sum((tmp_path / file).stat().st_size for file in set(places.values()))


@pytest.mark.parametrize(("family", "head"), CASES, ids=[head.name for _, head in CASES])
def test_names_as_they_should_be_stay(family: str, head: Head) -> None:
    model = tiny_family_model(family, head.auto_class)
    names = list(model.state_dict())
    assert unwrapped(names, names, model.base_model_prefix) == {name: name for name in names}
    assert not _WRAPPERS & {part for name in names for part in name.split(".")}
    bare = [name.removeprefix(f"{model.base_model_prefix}.") for name in names]
    assert list(unwrapped(bare, names, model.base_model_prefix).values()) == bare
    base = [name for name in names if name.startswith(f"{model.base_model_prefix}.")]
    assert list(unwrapped(base, names, model.base_model_prefix).values()) == base


parts = st.lists(
    st.sampled_from(["module", "_orig_mod", "_fsdp_wrapped_module", "base_model", "model", "net"]), max_size=4
)


@given(around=parts, family=st.sampled_from(["bert", "llama", "gpt2"]), wrapped_base=st.booleans())
def test_any_wrappers_come_off(around: list[str], family: str, wrapped_base: bool) -> None:
    model = tiny_family_model(family)
    names = list(model.state_dict())
    prefix = "".join(f"{part}." for part in around)
    if wrapped_base:  # the model inside was wrapped too
        written = {f"{prefix}{name.replace('.', '.module.', 1)}": name for name in names}
    else:
        written = {f"{prefix}{name}": name for name in names}
    assert unwrapped(written, names, model.base_model_prefix) == written


def test_a_weight_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    def twice(tensors: Tensors) -> Tensors:
        return tensors | {f"module.{name}": weight + 1 for name, weight in tensors.items() if "classifier" in name}

    message = refused(rewritten(save_tiny_checkpoint(tmp_path), twice))
    assert "weights classifier.bias and module.classifier.bias are both classifier.bias" in message


def test_an_unknown_prefix_is_named_with_the_way_to_take_it_off(tmp_path: Path) -> None:
    def student_and_teacher(tensors: Tensors) -> Tensors:
        return wrapped("student.")(tensors) | wrapped("teacher.")(tensors)

    message = refused(rewritten(save_tiny_checkpoint(tmp_path), student_and_teacher))
    assert "missing: bert.embeddings.LayerNorm.bias" in message
    assert (
        "they are there with 'student.' before their names; take it off: save_file({name.removeprefix('student.')"
        in message
    )


@pytest.mark.parametrize(
    ("lost", "named"),
    [
        ("classifier.weight", "missing: classifier.weight"),
        ("bert.encoder.layer.1.attention.self.key.bias", "missing: bert.encoder.layer.1.attention.self.key.bias"),
        ("bert.pooler", "missing: bert.pooler.dense.bias, bert.pooler.dense.weight"),
        ("bert.encoder.layer.2.", "missing: bert.encoder.layer.2.attention.output.LayerNorm.bias, .* and 13 more"),
        ("bert.embeddings.word", "missing: bert.embeddings.word_embeddings.weight"),
    ],
)
def test_a_weight_that_is_missing_is_told_by_name(tmp_path: Path, lost: str, named: str) -> None:
    directory = save_tiny_checkpoint(tmp_path)
    rewritten(
        directory, lambda tensors: {name: weight for name, weight in tensors.items() if not name.startswith(lost)}
    )
    with pytest.raises(CheckpointError, match=f"does not hold all weights of BertForSequenceClassification: {named}"):
        load_checkpoint(directory)


def test_a_head_of_another_size_is_told_with_both(tmp_path: Path) -> None:
    directory = save_tiny_checkpoint(tmp_path, tiny_config(labels=3))
    path = directory / "config.json"
    config = json.loads(path.read_text()) | {"id2label": {"0": "a", "1": "b"}, "label2id": {"a": 0, "b": 1}}
    path.write_text(json.dumps(config))
    assert (
        "of another shape: classifier.bias (3 instead of 2), classifier.weight (3 x 32 instead of 2 x 32)"
        in refused(directory)
    )


@pytest.mark.parametrize(
    "extra",
    [
        "bert.encoder.layer.3.output.dense.weight",
        "bert.encoder.layer.0.attention.self.distance_embedding.weight",
        "qa_outputs.weight",
        "classifier.1.weight",
        "bert.encoder.layer.0.crossattention.self.query.weight",
    ],
)
def test_a_weight_that_nothing_reads_is_told_by_name(tmp_path: Path, extra: str) -> None:
    directory = rewritten(save_tiny_checkpoint(tmp_path), lambda tensors: tensors | {extra: torch.ones(4, 4)})
    assert f"holds weights that a BertForSequenceClassification does not read: {extra}" in refused(directory)


def test_layers_that_the_configuration_leaves_out_are_told(tmp_path: Path) -> None:
    path = save_tiny_checkpoint(tmp_path) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"num_hidden_layers": 2}))
    assert "does not read: bert.encoder.layer.2.attention.output.LayerNorm.bias" in refused(tmp_path)


LEFTOVERS = {
    "bert": ("bert.embeddings.position_ids", "cls.predictions.bias", "cls.seq_relationship.weight", "loss_fct.weight"),
    "roberta": ("roberta.embeddings.position_ids", "roberta.pooler.dense.weight", "lm_head.dense.weight"),
    "distilbert": ("distilbert.embeddings.position_ids", "vocab_transform.weight", "vocab_layer_norm.bias"),
    "albert": ("albert.embeddings.position_ids", "predictions.dense.weight", "sop_classifier.classifier.weight"),
    "electra": ("electra.embeddings.position_ids", "discriminator_predictions.dense.weight", "generator_lm_head.bias"),
    "deberta-v2": ("deberta.embeddings.position_ids", "mask_predictions.dense.weight", "lm_predictions.lm_head.bias"),
    "mpnet": ("mpnet.embeddings.position_ids", "mpnet.pooler.dense.bias", "lm_head.bias"),
    "xlnet": ("lm_loss.bias",),
    "gpt2": ("transformer.h.0.attn.bias", "transformer.h.1.attn.masked_bias", "h.3.attn.bias", "lm_head.weight"),
    "llama": ("model.layers.0.self_attn.rotary_emb.inv_freq", "lm_head.weight"),
    "modernbert": ("decoder.bias",),
}


@pytest.mark.parametrize("family", LEFTOVERS)
def test_known_leftovers_do_no_harm(tmp_path: Path, family: str) -> None:
    extra = {name: torch.ones(2) for name in LEFTOVERS[family]}
    loaded = load_checkpoint(rewritten(saved(tmp_path, family), lambda tensors: tensors | extra))
    weights = tiny_family_model(family).state_dict()
    assert all(torch.equal(weight, loaded.model.state_dict()[name]) for name, weight in weights.items())


def test_a_pooler_that_the_head_leaves_out_does_no_harm(tmp_path: Path) -> None:
    pooler = {"bert.pooler.dense.weight": torch.ones(32, 32), "bert.pooler.dense.bias": torch.ones(32)}
    directory = saved(tmp_path, "bert", AutoModelForTokenClassification)
    loaded = load_checkpoint(rewritten(directory, lambda tensors: tensors | pooler))
    assert not any("pooler" in name for name in loaded.model.state_dict())


@pytest.mark.parametrize(("family", "auto_class"), [("bert", AutoModelForMaskedLM), ("gpt2", AutoModelForCausalLM)])
def test_another_part_of_a_language_models_head_is_no_leftover(tmp_path: Path, family: str, auto_class: Any) -> None:
    extra = {"lm_head.bias": torch.ones(65)}
    message = refused(rewritten(saved(tmp_path, family, auto_class), lambda tensors: tensors | extra))
    assert "does not read: lm_head.bias" in message


@pytest.mark.parametrize(("family", "head"), CASES, ids=[head.name for _, head in CASES])
def test_no_weight_of_a_model_is_a_leftover_but_those_of_its_pooler_and_head(family: str, head: Head) -> None:
    """A pattern that is too wide would hide that a layer was left out."""
    model = tiny_family_model(family, head.auto_class)
    inside = [name for name in model.state_dict() if any(part.isdigit() for part in name.split("."))]
    assert unread(inside, is_language_model=False) == sorted(inside)


def test_weights_as_the_hub_has_gpt2_are_read(tmp_path: Path) -> None:
    """Without ``transformer.`` before their names, with masks among them, and without the head that is tied."""

    def as_on_the_hub(tensors: Tensors) -> Tensors:
        bare = {name.removeprefix("transformer."): weight for name, weight in tensors.items() if "lm_head" not in name}
        return bare | {f"h.{layer}.attn.bias": torch.ones(1, 1, 8, 8).tril().bool() for layer in range(4)}

    loaded = load_checkpoint(rewritten(saved(tmp_path, "gpt2", AutoModelForCausalLM), as_on_the_hub))
    weights = tiny_family_model("gpt2", AutoModelForCausalLM).state_dict()
    assert all(torch.equal(weight, loaded.model.state_dict()[name]) for name, weight in weights.items())


def test_old_names_of_norms_are_read(tmp_path: Path) -> None:
    def old(tensors: Tensors) -> Tensors:
        new = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        return {
            next((name.replace(now, then) for now, then in new.items() if now in name), name): weight
            for name, weight in tensors.items()
        }

    loaded = load_checkpoint(
        rewritten(save_tiny_checkpoint(tmp_path), lambda tensors: wrapped("module.")(old(tensors)))
    )
    weights = tiny_model().state_dict()
    assert all(torch.equal(weight, loaded.model.state_dict()[name]) for name, weight in weights.items())
