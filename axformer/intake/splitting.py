"""Cut rows into some to train on and some to validate with: what somebody with one file does first."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from axformer.data.columns import ANSWERS, Columns
from axformer.data.rows import Rows
from axformer.errors import ConfigError
from axformer.intake.parts import confirming_places

_INPUTS = [name for name in Columns.model_fields if name not in ANSWERS]


def split(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """The rows to train on and those to validate with, each in the order of the file.

    Every class gives the same share of its different inputs, to within a row, as where the AxFormer paper cuts its validation
    set (section IV). Copies of an input stay in one part. Numbers are drawn along their order; lists are not balanced.

    Args:
        rows: with a column of inputs.
        share: of the different inputs, what is validated with.
        seed: of the draw.

    Raises:
        DataError: there is no column of inputs.
        ConfigError: a part would have no row.
    """
    inputs = _inputs(rows)
    first = {key: place for place, key in reversed(list(enumerate(inputs)))}
    different = sorted(first.values())
    codes = _codes(rows)
    labels = None if codes is None else [codes[place] for place in different]
    drawn = {inputs[different[place]] for place in confirming_places(len(different), labels, share, seed)}
    if not 0 < len(drawn) < len(different):
        raise ConfigError(
            f"share={share:g} of the {len(different):,} different inputs in '{rows.source}' leaves a part without a row; give "
            "more rows, or another share"
        )
    train, validation = (
        [place for place, key in enumerate(inputs) if (key in drawn) is wanted] for wanted in (False, True)
    )
    named = _with_names(rows)
    return named.at(train), named.at(validation)


def _inputs(rows: Rows) -> list[str]:
    """What a model would read of each row, as one text."""
    names = [part for name in _INPUTS if rows.has(name) for part in rows.parts(name)]
    if not names:
        rows.require("text")
    return [json.dumps(values, default=str) for values in zip(*(rows.table[name] for name in names), strict=True)]


def _codes(rows: Rows) -> Sequence[float] | None:
    """The place of each row's label among all labels; None if there is no column, or it holds lists."""
    if not rows.has("label") or len(rows.parts("label")) > 1:
        return None
    values = rows.table[rows.parts("label")[0]]
    if any(isinstance(value, list | dict) for value in values):
        return None
    keys = [(0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value)) for value in values]
    places = {key: float(place) for place, key in enumerate(sorted(set(keys)))}
    return [places[key] for key in keys]


def _with_names(rows: Rows) -> Rows:
    """The rows with names in the place of integers, where the data set has them: a file of JSON cannot say them otherwise."""
    table = {name: _named(values, rows.own_names.get(name, ())) for name, values in rows.table.items()}
    return replace(rows, table=table)


def _named(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_named(one, names) for one in value]
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value
