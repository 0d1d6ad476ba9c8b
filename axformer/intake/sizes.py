"""Read the counts of a checkpoint from its config and the headers of its weight files, and those of data from the sizes of its
files, without loading anything."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from axformer.config import RunConfig
from axformer.intake.admission import admit
from axformer.intake.dataset import LEAST_ROWS, TOKENS_PER_NEURON
from axformer.intake.footprint import TOKEN_BYTES, DataSizes, Sizes, fitted_part
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


_CHUNK = 2**20
"""Bytes of a data file that are read at a time."""


def read_data_sizes(files: Mapping[str, Path], config: RunConfig, neurons: int) -> DataSizes:
    """The sizes of a run's data.

    Args:
        files: by the fields of the run.
        config: the knobs.
        neurons: of a block of the model.
    """
    sizes = {part: path.stat().st_size for part, path in files.items()}
    part = fitted_part(files)
    if not config.needs.fitting or part not in files:
        return DataSizes(sizes, 0)
    rows = _rows_in(files[part])
    length = min(sizes[part] / TOKEN_BYTES / rows, config.max_length or sizes[part])
    if part == "validation":
        rows = round(rows * (1 - config.confirm))
    if part == "unlabelled":
        rows //= 2  # as many confirm at least
    drawn = config.calibrate_rows or max(TOKENS_PER_NEURON * neurons / length + 1, LEAST_ROWS)
    return DataSizes(sizes, round(min(rows, drawn) * length))


def _rows_in(path: Path) -> int:
    """About how many rows a data file has: lines, or objects of a list in one line. In a packed file every 256th byte looks
    like the end of a line, which is as good a guess as any."""
    lines = objects = 0
    with path.open("rb") as file:
        for chunk in iter(partial(file.read, _CHUNK), b""):
            lines += chunk.count(b"\n")
            objects += chunk.count(b"},")
    return max(lines, objects, 1)
