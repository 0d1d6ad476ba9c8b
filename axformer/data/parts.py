"""The part of the validation set that decides in a pass, and the part that confirms what was decided."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from axformer.checkpoint import Checkpoint
from axformer.config import PassConfig
from axformer.data.dataset import DataSet, prepare
from axformer.errors import ConfigError


def split_off(data: DataSet, checkpoint: Checkpoint, config: PassConfig) -> tuple[DataSet, DataSet | None]:
    """The part that decides, and the one that confirms; all and null where nothing is to confirm.

    Raises:
        ConfigError: the share is less than a row.
        DataError: a part does not do for the task, as one of a single class.
    """
    if config.confirm == 0:
        return data, None
    labels = data.samples.encoded.labels
    strata = labels if isinstance(labels[0], int | float) else None
    confirming = set(confirming_places(len(data.rows), strata, config.confirm, config.seed))
    if not confirming:
        raise ConfigError(
            f"confirm={config.confirm} of the {len(data.rows)} validation rows is less than one row; give more data, or a "
            "larger share"
        )

    def part(name: str, *, confirms: bool) -> DataSet:
        rows = data.rows.at([place for place in range(len(data.rows)) if (place in confirming) is confirms])
        return prepare(replace(rows, source=f"{rows.source} ({name})"), checkpoint, config)

    return part("the part that decides", confirms=False), part("the part that confirms", confirms=True)


def confirming_places(rows: int, labels: Sequence[float] | None, share: float, seed: int) -> list[int]:
    """The places of the rows that confirm, ``share`` of all, rounded down.

    Drawn by chance among the rows of each label, so that every class is in both parts with its share, give or take a row;
    numbers that are no classes are drawn along their order, which spreads them evenly.
    """
    order: list[int] = torch.randperm(rows, generator=torch.Generator().manual_seed(seed)).tolist()
    if labels is not None:
        order.sort(key=labels.__getitem__)
    return [place for rank, place in enumerate(order) if int((rank + 1) * share) > int(rank * share)]
