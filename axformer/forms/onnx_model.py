"""Lets an ONNX form be called like the model it was made from."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers.utils.generic import ModelOutput

from axformer.errors import ArtifactError
from axformer.forms.facts import read_facts
from axformer.forms.onnx import GRAPH_FILE, opened
from axformer.forms.onnx_fp16 import HALF_FILE, each_result_rounded
from axformer.forms.onnx_int8 import QUANTIZED_FILE


class OnnxModel:
    """Runs a graph in ONNX Runtime on the CPU.

    >>> model = OnnxModel(Path("hub"))
    >>> model(**tokenizer(["a text"], return_tensors="pt")).logits
    """

    device = torch.device("cpu")

    def __init__(
        self, directory: Path, threads: int | None = None, graph: str = GRAPH_FILE, *, rounds: bool = False
    ) -> None:
        """Load an ONNX form.

        Args:
            directory: the directory of ``config.json``.
            threads: number of threads for each operation; None for one per core.
            graph: the file of the graph in the directory.
            rounds: whether each result of a graph in half precision is rounded, also where this CPU would not do so.

        Raises:
            ArtifactError: the files are missing or damaged, or do not belong together.
            FormError: ONNX Runtime is not installed.
        """
        facts = read_facts(directory)
        self._session = opened(directory / graph, threads)
        self._inputs, self._outputs = facts.inputs, facts.outputs
        sides = self._session.get_inputs(), self._session.get_outputs()
        names = [tuple(value.name for value in side) for side in sides]
        if names != [self._inputs, self._outputs]:
            raise ArtifactError(
                f"'{directory / graph}' takes and gives {names}, but config.json of its directory says "
                f"{[self._inputs, self._outputs]}; they are not of one model"
            )
        if rounds:
            self._session = opened(directory / graph, threads, each_result_rounded(directory / graph))

    def __call__(self, **inputs: Tensor) -> ModelOutput:
        """Compute the outputs for a batch.

        Args:
            inputs: integers of shape (batch, tokens) or (batch, choices, tokens); inputs that the graph does not take are
                ignored.
        """
        taken = {name: inputs[name].cpu().numpy() for name in self._inputs}
        given: list[Any] = self._session.run(self._outputs, taken)
        outputs = {name: torch.from_numpy(values) for name, values in zip(self._outputs, given, strict=True)}
        return ModelOutput(outputs)  # type: ignore[no-untyped-call]


def load(directory: Path, device: str) -> OnnxModel:  # noqa: ARG001 - the interface of loaders; it computes on the CPU
    """Load the form with as many threads as PyTorch uses, so that the speed of both can be compared.

    Raises:
        ArtifactError: the form is missing or damaged.
        FormError: ONNX Runtime is not installed.
    """
    return OnnxModel(directory, torch.get_num_threads())


def load_int8(directory: Path, device: str) -> OnnxModel:  # noqa: ARG001 - as above
    """Load the form with 8-bit weights, otherwise as :func:`load`."""
    return OnnxModel(directory, torch.get_num_threads(), QUANTIZED_FILE)


def load_fp16(directory: Path, device: str) -> OnnxModel:  # noqa: ARG001 - as above
    """Load the form in half precision to be checked on this CPU: every result is rounded, as it is on the GPUs it is for."""
    return OnnxModel(directory, torch.get_num_threads(), HALF_FILE, rounds=True)
