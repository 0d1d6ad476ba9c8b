"""Optional packages, which only some forms need."""

from importlib import import_module
from typing import Any

from axformer.errors import FormError


def needed(name: str) -> Any:
    """Import a module of the extra ``onnx``.

    Raises:
        FormError: the module's package is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise FormError(
            f"ONNX files need the package {name.partition('.')[0]}, which does not load ({error}); "
            "pip install 'axformer[onnx]'"
        ) from None
