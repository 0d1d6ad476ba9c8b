"""Compact models as transformers models: what a pass leaves, saved and loaded like any other checkpoint.

For each family there is a configuration class, the family's own with the plan as one more field, and a model class, the
family's own on which surgery is done as soon as it is built. Their model type is ``axformer-<family>``, so that software
that does not know them says so instead of loading weights into the wrong shapes. ``import axformer.auto`` registers them.
"""

from copy import deepcopy
from functools import cache
from typing import Any

from transformers import PreTrainedConfig, PreTrainedModel

from axformer.architectures.base import Architecture
from axformer.architectures.registry import architecture_of
from axformer.errors import PlanError
from axformer.hard_attention import ATTENTION_NAME
from axformer.plan import Plan
from axformer.surgery import operate

MODEL_TYPE_PREFIX = "axformer-"
DEFAULT_ATTENTION = "sdpa"


@cache
def compact_classes(model_type: str) -> tuple[type[PreTrainedConfig], type[PreTrainedModel]]:
    """The configuration class and the model class of compact models of one family."""
    architecture = architecture_of(model_type)
    family = architecture.model_class
    config_class = type(
        f"Compact{family.config_class.__name__}",
        (family.config_class,),
        {
            "__module__": __name__,
            "__annotations__": {"axformer_layers": "list | None"},
            "model_type": f"{MODEL_TYPE_PREFIX}{model_type}",
            "axformer_layers": None,
        },
    )

    def build(self: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        if config.axformer_layers is None:
            raise PlanError(f"the configuration of a {MODEL_TYPE_PREFIX}{model_type} model holds no axformer_layers")
        plan = Plan.model_validate({"layers": config.axformer_layers})
        if needs_hard_attention(plan):
            config._attn_implementation = ATTENTION_NAME
        family.__init__(self, config, *args, **kwargs)
        operate(self, architecture, plan)

    model_class = type(
        f"Compact{family.__name__}",
        (family,),
        {"__module__": __name__, "__init__": build, "config_class": config_class},
    )
    return config_class, model_class


def compact(model: Any, architecture: Architecture, plan: Plan) -> Any:
    """The model that a plan leaves of a whole one, physically smaller, in evaluation mode on the same device.

    The whole model is left as it is.

    Raises:
        PlanError: the plan is one of another model.
    """
    plan.check_fits(architecture.dimensions(model.config))
    config_class, model_class = compact_classes(architecture.model_type)
    knowledge = model.config.to_dict() | {"axformer_layers": plan.model_dump(mode="json")["layers"]}
    for name in ("model_type", "architectures", "_name_or_path"):
        knowledge.pop(name, None)
    config = config_class(**knowledge)
    config._attn_implementation = DEFAULT_ATTENTION
    twin = deepcopy(model)
    operate(twin, architecture, plan)
    small = model_class(config).to(model.device).eval()
    small.load_state_dict(twin.state_dict())
    return small


def needs_hard_attention(plan: Plan) -> bool:
    """Whether some layer has hard attention; then the model runs with this library's attention function."""
    return any(layer.hard_attention is not None for layer in plan.layers)
