"""The part of the validation set that decides in a pass, and the part that confirms what was decided."""

from dataclasses import replace

import torch

from axformer.checkpoint import Checkpoint
from axformer.config import PassConfig
from axformer.data.dataset import DataSet, prepare
from axformer.data.rows import Label, Rows
from axformer.errors import ConfigError


def split_off(data: DataSet, checkpoint: Checkpoint, config: PassConfig) -> tuple[DataSet, DataSet | None]:
    """The part that decides, and the one that confirms; all and null where nothing is to confirm.

    Raises:
        ConfigError: the share is less than a row.
        DataError: a part does not do for the task, as one of a single class.
    """
    if config.confirm == 0:
        return data, None
    confirming = set(confirming_places(data.rows, config.confirm, config.seed))
    if not confirming:
        raise ConfigError(
            f"confirm={config.confirm} of the {len(data.rows)} validation rows is less than one row; give more data, or a "
            "larger share"
        )

    def part(name: str, *, confirms: bool) -> DataSet:
        rows = data.rows.at([place for place in range(len(data.rows)) if (place in confirming) is confirms])
        return prepare(replace(rows, source=f"{rows.source} ({name})"), checkpoint, config)

    return part("the part that decides", confirms=False), part("the part that confirms", confirms=True)


def confirming_places(rows: Rows, share: float, seed: int) -> list[int]:
    """The places of the rows that confirm, ``share`` of all, rounded down.

    Drawn by chance among the rows of each label, so that every class is in both parts with its share, give or take a row;
    numbers that are no classes are drawn along their order, which spreads them evenly.
    """
    order: list[int] = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed)).tolist()
    if rows.has("label"):
        labels = rows.labels("label")
        order.sort(key=lambda place: _stratum(labels[place]))
    return [place for rank, place in enumerate(order) if int((rank + 1) * share) > int(rank * share)]


def _stratum(label: Label) -> tuple[str, float]:
    return (label, 0.0) if isinstance(label, str) else ("", float(label))
