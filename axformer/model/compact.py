"""Compact models as transformers models: the result of a pass, saved and loaded like any other checkpoint.

Each family has a config class, which adds the plan to the family's own, and a model class for each head, which performs
surgery on the family's own model right after building it. The model type is ``axformer-<family>``, so that software that does
not know it reports an error instead of loading weights into wrong shapes. ``import axformer.auto`` registers all families.
"""

from copy import deepcopy
from functools import cache
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from axformer.architectures.base import Architecture
from axformer.architectures.hard_attention import ATTENTION_NAME
from axformer.architectures.heads import Head
from axformer.architectures.registry import ARCHITECTURES, architecture_of
from axformer.errors import PlanError
from axformer.model.one_position import read_one_position
from axformer.model.surgery import operate, twin
from axformer.plan.plan import Plan
from axformer.tasks.registry import task_of

MODEL_TYPE_PREFIX = "axformer-"
NOT_OF_THE_FAMILY = ("model_type", "architectures", "_name_or_path")
"""Keys of a config that differ between compact models and others of their family."""


@cache
def compact_config_class(model_type: str) -> type[PreTrainedConfig]:
    """The configuration class of compact models of one family."""
    family = CONFIG_MAPPING[model_type]
    return type(
        f"Compact{family.__name__}",
        (family,),
        {
            "__module__": __name__,
            "__annotations__": {"axformer_layers": "list | None"},
            "model_type": f"{MODEL_TYPE_PREFIX}{model_type}",
            "axformer_layers": None,
        },
    )


@cache
def compact_model_class(model_type: str, family: Any) -> type[PreTrainedModel]:
    """The class of compact models of one of a family's model classes."""
    architecture = architecture_of(model_type)
    head = next((head for head in architecture.every_head if head.model_class is family), None)

    def build(self: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        plan = _plan_in(config)
        if needs_hard_attention(plan) and family._supports_attention_backend:
            config._attn_implementation = ATTENTION_NAME
        family.__init__(self, config, *args, **kwargs)
        if not getattr(self.base_model, "is_operated", False):  # some heads build their base model as a compact model
            architecture.prepare(self)
            operate(self, architecture, plan)
            _settle_format(self)
            self.base_model.is_operated = True
        if head is not None and _reads_one_position(head, architecture, config):
            read_one_position(self, architecture, plan)

    def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return family.from_pretrained.__func__(cls, *args, **{"key_mapping": dict(architecture.older_names)} | kwargs)

    body = {
        "__module__": __name__,
        "__init__": build,
        "config_class": compact_config_class(model_type),
        "from_pretrained": classmethod(from_pretrained),
    }
    return type(f"Compact{family.__name__}", (family,), body)


def __getattr__(name: str) -> Any:
    """The class of this name, made again where a pickle asks for it."""
    for model_type, architecture in ARCHITECTURES.items() if name.startswith("Compact") else ():
        if name == f"Compact{CONFIG_MAPPING[model_type].__name__}":
            return compact_config_class(model_type)
        for head in (*architecture.every_head, architecture.without_head):
            if name == f"Compact{head.name}":
                return compact_model_class(model_type, head.model_class)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def register(model_type: str) -> None:
    """Let the transformers Auto classes load compact models of a family. It imports the family's own classes."""
    architecture = architecture_of(model_type)
    config_class = compact_config_class(model_type)
    AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
    AutoModel.register(config_class, compact_model_class(model_type, architecture.base_class), exist_ok=True)
    for head in architecture.heads:
        head.auto_class.register(config_class, compact_model_class(model_type, head.model_class), exist_ok=True)


def compact(model: Any, architecture: Architecture, plan: Plan) -> Any:
    """Build the physically smaller model of a plan, in evaluation mode on the same device.

    The whole model stays unchanged.

    Raises:
        PlanError: the plan is one of another model, or drops layers that the model cannot do without.
    """
    plan.check_fits(architecture.dimensions(model.config))
    register(architecture.model_type)
    cut = _sharing(model)
    operate(cut, architecture, plan)
    layers = plan.of_remaining().model_dump(mode="json")["layers"]
    knowledge = cut.config.to_dict() | {"axformer_layers": layers}
    for name in NOT_OF_THE_FAMILY:
        knowledge.pop(name, None)
    config = compact_config_class(architecture.model_type)(**knowledge)
    config._attn_implementation = stock_attention(model)
    head = architecture.head_of(model)
    family = (
        model.__class__ if head is None else head.model_class
    )  # not a subclass of a user's, which nothing could load
    small: Any = compact_model_class(architecture.model_type, family)(config).to(model.device).eval()
    small.load_state_dict(cut.state_dict())
    if model.can_generate():
        small.generation_config = deepcopy(model.generation_config)
    return small


def untouched(model: Any, architecture: Architecture) -> Any | None:
    """The whole model in the compact class, with nothing removed: its last layer is computed at one position.

    Compact models are also faster for that reason, so the gain from removal is their speed against this one. It shares all
    weights with the whole model and takes no extra memory; None if the compact class computes all positions.
    """
    head = architecture.head_of(model)
    if head is None or not _reads_one_position(head, architecture, model.config):
        return None
    if architecture.read_position(model.config, torch.zeros(1, 1, dtype=torch.long)) is None:
        return None
    whole = _sharing(model)
    whole.config._attn_implementation = stock_attention(model)
    read_one_position(whole, architecture, Plan.full(architecture.dimensions(model.config)))
    return whole


def _sharing(model: Any) -> Any:
    """A copy of a model that shares its weights, which surgery replaces and does not change, and has a config of its own."""
    copy, config = twin(model), deepcopy(model.config)
    for part in copy.modules():
        if vars(part).get("config") is model.config:
            part.config = config
    return copy


def stock_attention(model: Any) -> str:
    """The attention implementation that transformers chooses for a model by default."""
    return "sdpa" if model._supports_sdpa else "eager"


def needs_hard_attention(plan: Plan) -> bool:
    """Whether any layer has hard attention, which requires this library's attention function."""
    return any(layer.hard_attention is not None for layer in plan.layers)


def _settle_format(model: Any) -> None:
    """Cast all weights to PyTorch's default dtype: XLNet creates some in float32 explicitly, and would then need float32."""
    for weight in model.parameters():
        weight.data = weight.data.to(torch.get_default_dtype())


def _reads_one_position(head: Head, architecture: Architecture, config: Any) -> bool:
    return task_of(head.auto_class, config).pooled and head.auto_class not in architecture.reads_behind_padding


def _plan_in(config: Any) -> Plan:
    if config.axformer_layers is None:
        raise PlanError(f"the configuration of a {config.model_type} model holds no axformer_layers")
    return Plan.model_validate({"layers": config.axformer_layers})
