"""The part of the validation set that decides in a pass, and the part that confirms what was decided."""

from dataclasses import replace

import torch

from axformer.checkpoint import Checkpoint
from axformer.config import PassConfig
from axformer.data.dataset import DataSet, prepare
from axformer.data.rows import Label, Rows
from axformer.errors import ConfigError, DataError


def split_off(data: DataSet, checkpoint: Checkpoint, config: PassConfig) -> tuple[DataSet, DataSet | None]:
    """The part that decides, and the one that confirms; all and null where nothing is to confirm.

    Raises:
        ConfigError: the share is less than a row.
        DataError: the part that decides has one label only, or a part does not do for the task.
    """
    if config.confirm == 0:
        check_deciding(data)
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

    deciding = part("the part that decides", confirms=False)
    check_deciding(deciding)
    return deciding, part("the part that confirms", confirms=True)


def check_deciding(data: DataSet) -> None:
    """Make sure that rows can decide. Rows that only measure may all have the same label.

    Raises:
        DataError: they all have the same label; then the best model is one that answers it whatever it reads.
    """
    alike = data.samples.encoded.alike
    if alike is not None:
        raise DataError(
            f"data file '{data.rows.source}' has {alike} in its {len(data.rows)} rows, and rows that decide must differ; give "
            "a mixed sample of the data"
        )


def confirming_places(rows: Rows, share: float, seed: int) -> list[int]:
    """The places of the rows that confirm, ``share`` of all, rounded down.

    Drawn by chance among the rows of each label, so that every class is in both parts with its share, give or take a row;
    numbers that are no classes are drawn along their order, which spreads them evenly.
    """
    order: list[int] = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed)).tolist()
    cells = rows.table.get(rows.columns.label, [])
    if cells and not isinstance(cells[0], list):  # several numbers have no order
        labels = rows.labels("label")
        order.sort(key=lambda place: _stratum(labels[place]))
    return [place for rank, place in enumerate(order) if int((rank + 1) * share) > int(rank * share)]


def _stratum(label: Label) -> tuple[str, float]:
    return (label, 0.0) if isinstance(label, str) else ("", float(label))
