"""What is handed over in Python as a model or a tokenizer is unwrapped, or refused by its name."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import BertModel, TextClassificationPipeline

import axformer
from axformer.config import PassConfig
from axformer.errors import CheckpointError, InputError, WrongTypeError
from axformer.intake.checkpoint import from_memory
from axformer.intake.objects import model_in
from tests.tiny_models import tiny_config, tiny_model, tiny_rows, tiny_tokenizer

# The first use of torch.compile imports what torch itself calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")

MODEL = tiny_model(tiny_config(layers=1))
CONFIG = PassConfig(attention_top_k=None, accept_poor_model=True)


def with_adapters() -> Any:
    model = tiny_model(tiny_config(layers=1))
    model._hf_peft_config_loaded = True
    return model


def without_weights() -> Any:
    with torch.device("meta"):
        return type(MODEL)(tiny_config(layers=1))


@pytest.mark.parametrize(
    "wrap",
    [
        torch.nn.DataParallel,
        torch.compile,
        lambda model: torch.compile(torch.nn.DataParallel(model)),
        lambda model: torch.nn.DataParallel(torch.compile(model)),
    ],
)
def test_wrapped_models_are_unwrapped(wrap: Callable[[Any], Any]) -> None:
    assert model_in(wrap(MODEL)) is MODEL


@pytest.mark.parametrize("change", [lambda model: model, torch.compile, torch.nn.DataParallel])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_models_in_half_precision_are_taken_and_left_as_they_are(
    dtype: torch.dtype, change: Callable[[Any], Any]
) -> None:
    model = tiny_model(tiny_config(layers=1)).to(dtype)
    result = axformer.prune(change(model), tiny_tokenizer(), tiny_rows(20), CONFIG)
    assert result.trace[0].loss > 0
    assert model.dtype is dtype


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: None, "the model is None; load it first"),
        (lambda: "in/checkpoint", "the model is the path 'in/checkpoint'; load it first"),
        (lambda: type(MODEL), "the model is the class BertForSequenceClassification"),
        (MODEL.state_dict, "the model is a state dict; put it into a model first"),
        (lambda: MODEL.config, "and not a model of transformers"),
        (lambda: torch.nn.Linear(2, 2), r"of type torch.nn.modules.linear.Linear, and not a model of transformers"),
        (
            lambda: TextClassificationPipeline(model=MODEL, tokenizer=tiny_tokenizer()),
            "give the transformers model in it",
        ),
        (with_adapters, "merge them first: model = model.merge_and_unload"),
        (without_weights, "not in memory; load it without device_map"),
    ],
)
def test_other_objects_are_no_models(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(WrongTypeError, match=words) as caught:
        axformer.prune(make(), tiny_tokenizer(), tiny_rows(20))
    assert isinstance(caught.value, InputError)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    "switches",
    [
        {"chunk_size_feed_forward": 4},
        {"output_hidden_states": True, "output_attentions": True},
        {"return_dict": False},
        {"use_cache": False, "torchscript": True},
    ],
)
def test_switches_that_change_no_output_are_off_in_a_pass(switches: dict[str, Any]) -> None:
    config = tiny_config(layers=1)
    for name, value in switches.items():
        setattr(config, name, value)
    config._attn_implementation = "eager"
    model = type(MODEL)(config).eval()
    expected = axformer.prune(plain_twin(model), tiny_tokenizer(), tiny_rows(21), CONFIG)
    found = axformer.prune(model, tiny_tokenizer(), tiny_rows(21), CONFIG)
    assert found.trace[0].loss == pytest.approx(expected.trace[0].loss)
    assert {name: getattr(model.config, name) for name in switches} == switches, "the user's own stays as it is"


def plain_twin(model: Any) -> Any:
    twin = type(MODEL)(tiny_config(layers=1)).eval()
    twin.load_state_dict(model.state_dict())
    return twin


def test_overflow_in_its_own_format_is_seen_before_the_pass() -> None:
    for dtype, scale, overflows in (
        (torch.float16, 1e4, True),
        (torch.bfloat16, 1e4, False),
        (torch.float16, 1, False),
    ):
        model = tiny_model(tiny_config(layers=1))
        with torch.no_grad():
            model.bert.encoder.layer[0].intermediate.dense.weight *= scale
        model = model.to(dtype)
        if overflows:
            with pytest.raises(
                CheckpointError, match=r"not numbers where it computes in float16; save the checkpoint in"
            ):
                axformer.prune(model, tiny_tokenizer(), tiny_rows(20), CONFIG)
        else:
            axformer.prune(model, tiny_tokenizer(), tiny_rows(20), CONFIG)


def test_a_backbone_without_a_head_is_refused() -> None:
    with pytest.raises(CheckpointError, match="a BertModel has no supported head"):
        from_memory(BertModel(tiny_config()), tiny_tokenizer())


@pytest.mark.parametrize("tokenizer", [None, "in/checkpoint", Tokenizer(WordLevel({"a": 0}, "a"))])
def test_other_objects_are_no_tokenizers(tokenizer: Any) -> None:
    with pytest.raises(WrongTypeError, match=r"the tokenizer is .*; give the one that the model was fine-tuned with"):
        axformer.prune(MODEL, tokenizer, tiny_rows(20))


def test_knobs_in_a_list_are_refused_with_the_way_to_give_them() -> None:
    with pytest.raises(WrongTypeError, match=r"the config is of type list; give knobs by name"):
        axformer.prune(MODEL, tiny_tokenizer(), tiny_rows(20), ["order=random"])  # type: ignore[arg-type]
