"""Split the validation set into the part that decides in a pass and the part that confirms, and compare sets by their inputs.

Rows that decide, train or fit weights are no measure of what a model does on new rows. Texts that repeat by chance are part of
any data, so only sets that share a larger part of their rows are told of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from axformer.config import RunConfig
from axformer.data.encoding import Encoded
from axformer.errors import ConfigError, DataError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import SHARE, DataSet, prepare

FEW_INPUTS = 30
"""With fewer different inputs that decide, the user is told."""


def split_off(data: DataSet, checkpoint: Checkpoint, config: RunConfig) -> tuple[DataSet, DataSet | None]:
    """The deciding and the confirming part; all samples and None without confirmation. Copies of an input stay in one part.

    Raises:
        ConfigError: the share is less than one row.
        DataError: the deciding part has only one label, or a part does not fit the task.
    """
    check_deciding(data)
    if config.confirm == 0:
        return data, None
    inputs = data.samples.encoded.inputs
    different = sorted(set(inputs))
    labels = _one_label_each(data.samples.encoded)
    labels = None if labels is None else [labels[place] for place in different]
    places = confirming_places(len(different), labels, config.confirm, config.seed)
    confirming = {different[place] for place in places}
    if not confirming:
        what = "validation rows" if len(different) == len(inputs) else "different inputs in the validation rows"
        raise ConfigError(
            f"confirm={config.confirm} of the {len(different)} {what} is less than one row; give more data, or a larger share"
        )

    def part(name: str, *, confirms: bool) -> DataSet:
        rows = data.rows.at([row for row in range(len(data.rows)) if (inputs[row] in confirming) is confirms])
        return prepare(replace(rows, source=f"{rows.source} ({name})"), checkpoint, config)

    deciding = part("the part that decides", confirms=False)
    check_deciding(deciding)
    return deciding, part("the part that confirms", confirms=True)


def _one_label_each(encoded: Encoded) -> list[float] | None:
    """The class or number of each sample; None if samples have no label or several."""
    labels = encoded.labels
    if isinstance(labels[0], list) and len(labels[0]) == 1 and not encoded.per_token:
        labels = [number for (number,) in labels]
    return labels if isinstance(labels[0], int | float) else None


def check_deciding(data: DataSet) -> None:
    """Check that rows can decide. Rows that only measure may all have the same label.

    Raises:
        DataError: all labels or all inputs are equal, so the best model would be one that ignores its input.
    """
    encoded = data.samples.encoded
    alike = encoded.alike
    if alike is None and len(data.rows) > 1 and not any(encoded.inputs):
        alike = "the same input"
    if alike is not None:
        raise DataError(
            f"data file '{data.rows.source}' has {alike} in its {len(data.rows)} rows, and rows that decide must differ; give "
            "a mixed sample of the data"
        )


def confirming_places(rows: int, labels: Sequence[float] | None, share: float, seed: int) -> list[int]:
    """Indices of the confirming rows, ``share`` of all, rounded down. Rows are different inputs.

    They are drawn at random within each label, so that both parts have each class's share to within a row. Numbers that are not
    classes are drawn along their order, which spreads them evenly.
    """
    order: list[int] = torch.randperm(rows, generator=torch.Generator().manual_seed(seed)).tolist()
    if labels is not None:
        order.sort(key=labels.__getitem__)
    return [row for rank, row in enumerate(order) if int((rank + 1) * share) > int(rank * share)]


def shared_with(data: Encoded, others: Mapping[str, Encoded]) -> str | None:
    """Why what a set tells does not hold for new rows, as the end of a sentence, or None: it shares rows with others.

    Args:
        data: rows that measure.
        others: what a result is made with, by its name in the sentence, such as "the training rows".
    """
    own = data.keys
    counts = {name: sum(map(set(other.keys).__contains__, own)) for name, other in others.items()}
    told = [f"{count:,} are also among {name}" for name, count in counts.items() if count > SHARE * len(own)]
    return f"of its {len(own):,} rows {' and '.join(told)}; give every row to one of them alone" if told else None
