"""Batches as evaluation loops commonly make them: the data in its own order, a fixed number of rows at a time.

``pad_to=128`` pads every row to the same length, as the authors' program does; without it each batch is as long as its longest
row, as with transformers' ``DataCollatorWithPadding``.
"""

import torch

from axformer.data.batches import Batch, Samples
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet

ROWS = 32
"""Rows of a batch."""


def in_data_order(data: DataSet, checkpoint: Checkpoint, pad_to: int | None) -> Samples:
    """The data set again, in batches of ``ROWS`` in the order of the file.

    Args:
        data: single- or multi-label classification or regression, one model row a sample.
        pad_to: tokens of every row; null pads to the longest of a batch.
    """
    samples = data.samples
    count = len(samples.sample_of_row)
    starts = range(0, count, ROWS)
    batches = [_batch(samples, checkpoint, range(start, min(count, start + ROWS)), pad_to) for start in starts]
    return Samples(tuple(batches), samples.encoded, samples.sample_of_row, samples.lengths)


def _batch(samples: Samples, checkpoint: Checkpoint, places: range, pad_to: int | None) -> Batch:
    encoded, device = samples.encoded, checkpoint.model.device
    features = {name: [values[place] for place in places] for name, values in encoded.features.items()}
    padding = "longest" if pad_to is None else "max_length"
    inputs = checkpoint.tokenizer.pad(features, padding=padding, max_length=pad_to, return_tensors="pt", verbose=False)
    return Batch(
        rows=torch.tensor(list(places), device=device),
        inputs={name: values.to(device) for name, values in inputs.items()},
        labels=torch.tensor([encoded.labels[place] for place in places], device=device),
    )
