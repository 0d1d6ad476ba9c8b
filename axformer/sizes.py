"""Reads the counts of a checkpoint from its configuration and the headers of its weight files, and loads nothing."""

import re
from math import prod
from pathlib import Path

from safetensors import SafetensorError, safe_open
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from axformer.architectures.registry import architecture_of
from axformer.checkpoint import head_of, read_config, weight_files
from axformer.errors import CheckpointError, first_line
from axformer.footprint import Sizes

_IN_A_LAYER = re.compile(r"\.\d+\.")
_PER_TOKEN = (AutoModelForMaskedLM, AutoModelForCausalLM)


def read_sizes(directory: Path) -> Sizes:
    """The counts of a local checkpoint.

    Raises:
        CheckpointError: it is missing, damaged, of an unsupported family, or of a head that is not supported.
    """
    known = read_config(directory)
    architecture = architecture_of(str(known.get("model_type")))
    head = head_of(directory, known, architecture)
    try:
        config = CONFIG_MAPPING[architecture.model_type].from_pretrained(directory, local_files_only=True)
        dimensions = architecture.dimensions(config)
        parameters = _parameters(directory)
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"checkpoint '{directory}' cannot be read: {first_line(error)}; copy it again") from None
    return Sizes(
        parameters=sum(parameters.values()),
        layer_parameters=sum(count for name, count in parameters.items() if _IN_A_LAYER.search(name)),
        dimensions=dimensions,
        outputs_per_token=int(config.vocab_size) if head.auto_class in _PER_TOKEN else 0,
    )


def _parameters(directory: Path) -> dict[str, int]:
    """How many numbers each tensor holds."""
    counts = {}
    for path in weight_files(directory):
        with safe_open(path, framework="pt") as file:
            counts.update({name: prod(file.get_slice(name).get_shape()) for name in file.keys()})  # noqa: SIM118
    return counts
