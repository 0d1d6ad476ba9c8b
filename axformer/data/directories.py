"""Directories of data: the part files of Spark and Dask, what ``save_to_disk`` of ``datasets`` writes; patterns of names."""

import json
import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from axformer.data.formats import ending_of
from axformer.errors import DataError

_DICT, _STATE, _INFO = "dataset_dict.json", "state.json", "dataset_info.json"
"""What ``save_to_disk`` writes beside the data of several splits, or of one."""
_NAMED = 6
"""Most files that a message names."""


def files_of(path: str) -> tuple[list[str], Any] | None:
    """The files of a directory or a pattern with ``*``, in the order of the numbers in their names; None if it is a file.

    Args:
        path: a local path or a URL. Web servers have no directories.

    Returns:
        Addresses, and the features that ``datasets`` keeps beside them; None if it keeps none.

    Raises:
        DataError: it is a directory of something else than one table.
    """
    import fsspec  # takes as long as 10,000 rows

    system, root = fsspec.core.url_to_fs(path)
    if {"http", "https"} & {system.protocol, *([] if isinstance(system.protocol, str) else system.protocol)}:
        return None
    if not system.isdir(root):
        if not re.search(r"[*?\[]", root) or system.exists(root):
            return None
        if not (found := _in_order(system.glob(root))):
            raise DataError(f"data file '{path}': no file has such a name")
        return _of_one_table(path, list(map(system.unstrip_protocol, found))), None
    names = {PurePosixPath(found).name for found in system.ls(root, detail=False)}
    here = {name: f"{path.rstrip('/')}/{name}" for name in _in_order(names)}
    if _DICT in names:
        splits = _read(system, f"{root}/{_DICT}").get("splits", [])
        if len(splits) == 1:
            return files_of(f"{path.rstrip('/')}/{splits[0]}")
        raise DataError(f"data file '{path}' holds the splits {', '.join(splits)}; give {path.rstrip('/')}/NAME of one")
    if _STATE not in names:
        return _of_one_table(path, [here[name] for name in here if name[0] not in "._" and ending_of(name)]), None
    state = _read(system, f"{root}/{_STATE}")
    if state.get("_indices_data_files"):
        raise DataError(f"data file '{path}' keeps its order apart; call flatten_indices() and save_to_disk again")
    features = _read(system, f"{root}/{_INFO}").get("features") if _INFO in names else None
    return [here[PurePosixPath(file["filename"]).name] for file in state["_data_files"]], features


def _read(system: Any, path: str) -> dict[str, Any]:
    found = json.loads(system.cat_file(path))
    return found if isinstance(found, dict) else {}


def _in_order(names: Iterable[str]) -> list[str]:
    """Names in the order of the numbers in them, so that part 10 follows part 9."""
    return sorted(names, key=lambda name: [int(part) if place % 2 else part for place, part in enumerate(_cut(name))])


def _cut(name: str) -> list[str]:
    """The parts of a name that are no numbers, and between them its numbers."""
    return re.split(r"(\d+)", name)


def _of_one_table(path: str, files: list[str]) -> list[str]:
    """The files, if their names are alike up to a number: ``train.csv`` and ``test.csv`` are no parts of one table."""
    names = [PurePosixPath(file).name for file in files]
    if not files:
        raise DataError(f"data file '{path}' is a directory without data files; name a file")
    if len({(_cut(name)[0], ending_of(name)) for name in names}) > 1:
        raise DataError(f"data file '{path}' is a directory; name one file in it: {', '.join(names[:_NAMED])}")
    return files
