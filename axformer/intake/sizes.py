"""Read the counts of a checkpoint from its config and the headers of its weight files, without loading anything."""

import re
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from axformer.intake.admission import admit
from axformer.intake.footprint import Sizes
from axformer.wire.heads import NewHead

_IN_A_LAYER = re.compile(r"\.\d+\.")
_PER_TOKEN = (AutoModelForMaskedLM, AutoModelForCausalLM)


def read_sizes(directory: Path, new_head: NewHead | None = None) -> Sizes:
    """The counts of a local checkpoint, or of a base model that gets a new head.

    Raises:
        CheckpointError: it is missing, damaged, of an unsupported family, or of a head that is not supported.
    """
    admitted = admit(directory, new_head)
    config, parameters = admitted.config, {name: tensor.count for name, tensor in admitted.weights.tensors.items()}
    return Sizes(
        parameters=sum(parameters.values()),
        layer_parameters=sum(count for name, count in parameters.items() if _IN_A_LAYER.search(name)),
        dimensions=admitted.architecture.dimensions(config),
        outputs_per_token=int(config.vocab_size) if admitted.head.auto_class in _PER_TOKEN else 0,
    )
