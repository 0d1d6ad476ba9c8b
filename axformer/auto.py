"""Importing this module lets the transformers Auto classes and ``pipeline`` load compact models.

>>> import axformer.auto
>>> from transformers import pipeline
>>> classify = pipeline("text-classification", model="pruned/model")
"""

from transformers import AutoConfig, AutoModel

from axformer.architectures.base import Architecture
from axformer.architectures.registry import ARCHITECTURES
from axformer.model.compact import compact_config_class, compact_model_class


def _register(architecture: Architecture) -> None:
    config_class = compact_config_class(architecture.model_type)
    AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
    base = compact_model_class(architecture.model_type, architecture.base_class)
    AutoModel.register(config_class, base, exist_ok=True)
    for head in architecture.heads:
        model_class = compact_model_class(architecture.model_type, head.model_class)
        head.auto_class.register(config_class, model_class, exist_ok=True)


for _architecture in ARCHITECTURES.values():
    _register(_architecture)
