"""A refit as a file next to its plan, so that the plan can be applied again without the calibration data; and what differs
between two of them."""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from axformer.errors import PlanError
from axformer.plan.blocks import Block
from axformer.plan.diff import PlanDifference
from axformer.repair.refit import BlockFit, Refit

REPAIR_NAME = "repair.safetensors"
_FORMAT = "axformer-refit/1"
_ABOUT = "refit"
"""The entry of the file's metadata that says what the tensors are."""


def write_refit(fits: Refit, directory: Path) -> None:
    """Write the weights of every fitted block."""
    tensors: dict[str, Tensor] = {}
    for block, fit in fits.items():
        if fit.weight is not None:
            tensors[f"{block.number}.weight"] = fit.weight.contiguous().cpu()
        if fit.bias is not None:
            tensors[f"{block.number}.bias"] = fit.bias.contiguous().cpu()
    blocks = {str(block.number): {"ridge": fit.ridge, "tokens": fit.tokens} for block, fit in fits.items()}
    # One entry, since entries are written in no fixed order and the same refit must give the same bytes.
    save_file(tensors, directory / REPAIR_NAME, {_ABOUT: json.dumps({"format": _FORMAT, "blocks": blocks})})


def read_refit(directory: Path) -> Refit:
    """Read what :func:`write_refit` wrote.

    Raises:
        PlanError: the file is missing or damaged.
    """
    file = directory / REPAIR_NAME
    if not file.is_file():
        raise PlanError(
            f"the fitted weights of this plan, '{file}', cannot be read: there is no such file; give the directory of the "
            "whole result"
        )
    try:
        with safe_open(file, framework="pt") as opened:
            about = json.loads((opened.metadata() or {})[_ABOUT])
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - not a dict
        if about["format"] != _FORMAT:
            raise PlanError(f"'{file}' is of format '{about['format']}', not '{_FORMAT}'")
        return {
            Block.at(int(number)): BlockFit(
                tensors.get(f"{number}.weight"), tensors.get(f"{number}.bias"), fit["ridge"], fit["tokens"]
            )
            for number, fit in about["blocks"].items()
        }
    except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
        raise PlanError(f"the fitted weights of this plan, '{file}', cannot be read: {error}") from None


def differences_of_fits(first: Refit, second: Refit) -> list[PlanDifference]:
    """All differences, bottom block first; empty if the weights are equal bit for bit."""
    blocks = sorted({*first, *second})
    return [
        PlanDifference(block.layer, f"{block.kind.value} weights", *map(_description_of, pair))
        for block, pair in ((block, (first.get(block), second.get(block))) for block in blocks)
        if not _are_same(*pair)
    ]


def _are_same(one: BlockFit | None, other: BlockFit | None) -> bool:
    if one is None or other is None:
        return one is other
    return _are_equal(one.weight, other.weight) and _are_equal(one.bias, other.bias)


def _are_equal(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and torch.equal(one, other)


def _description_of(fit: BlockFit | None) -> str:
    if fit is None:
        return "the checkpoint's"
    how = "bias only" if fit.ridge is None else f"ridge {fit.ridge:g}"
    return f"fitted, {how}, {fit.tokens:,} tokens"
