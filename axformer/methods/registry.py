"""The methods by name."""

from collections.abc import Mapping

from axformer.config import RunConfig
from axformer.methods.axformer.method import AxFormer
from axformer.methods.base import Method
from axformer.methods.compress.method import Compress
from axformer.methods.layers.method import Layers
from axformer.methods.rank.method import Rank

METHODS: Mapping[str, Method] = {method.name: method for method in (AxFormer(), Compress(), Layers(), Rank())}


def method_of(config: RunConfig) -> Method:
    """Look up the method that a config names."""
    return METHODS[config.method]
