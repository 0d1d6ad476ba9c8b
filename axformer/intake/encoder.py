"""Load the model that a checkpoint was trained from, which may have another head or none."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axformer.architectures.base import Architecture
from axformer.intake.admission import admit, loadable
from axformer.intake.checkpoint import Checkpoint, load_checkpoint, load_model, load_tokenizer, local_directory
from axformer.plan.elements import Dimensions


@dataclass(frozen=True)
class Encoder:
    """A loaded model without a head."""

    model: Any
    """The base model in float32, in evaluation mode, prepared as that of a checkpoint."""
    tokenizer: Any
    architecture: Architecture

    @property
    def dimensions(self) -> Dimensions:
        """The counts that determine the model's elements."""
        return self.architecture.dimensions(self.model.config)


def load_other(reference: str | Path, device: str = "cpu") -> Checkpoint | Encoder:
    """Load a model with or without a head, and its tokenizer.

    Args:
        reference: a local directory, or ``hf://organisation/name``.

    Raises:
        CheckpointError: it is missing, damaged, of an unsupported family, or of a head that is not supported.
    """
    admitted = admit(local_directory(str(reference)), or_bare=True)
    architecture = admitted.architecture
    if admitted.head.model_class is not architecture.base_class:
        return load_checkpoint(reference, device)
    with loadable(admitted) as known:
        model, tokenizer = load_model(admitted, known), load_tokenizer(admitted, known)
    architecture.adopt(model)
    return Encoder(model.to(device).eval(), tokenizer, architecture)
