"""Importing this module lets the transformers Auto classes and ``pipeline`` load compact models.

>>> import axformer.auto
>>> from transformers import pipeline
>>> classify = pipeline("text-classification", model="pruned/model")
"""

from axformer.architectures.registry import ARCHITECTURES
from axformer.model.compact import register

for _model_type in ARCHITECTURES:
    register(_model_type)
