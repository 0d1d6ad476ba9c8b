"""Importing this module lets the transformers Auto classes and ``pipeline`` load compact models.

>>> import axformer.auto
>>> from transformers import pipeline
>>> classify = pipeline("text-classification", model="pruned/model")
"""

from transformers import AutoConfig, AutoModelForSequenceClassification

from axformer.architectures.registry import ARCHITECTURES
from axformer.compact import compact_classes


def _register(model_type: str) -> None:
    config_class, model_class = compact_classes(model_type)
    AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
    AutoModelForSequenceClassification.register(config_class, model_class, exist_ok=True)


for _model_type in ARCHITECTURES:
    _register(_model_type)
