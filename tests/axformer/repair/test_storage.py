"""Fitted weights as a file: read as they were written, and the same bytes each time."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from axformer.errors import PlanError
from axformer.plan.blocks import Block
from axformer.repair.refit import BlockFit
from axformer.repair.storage import REPAIR_NAME, read_refit, write_refit

FITS = {
    Block.at(1): BlockFit(torch.arange(6.0).view(2, 3), torch.ones(2), 0.01, 90),
    Block.at(2): BlockFit(None, torch.zeros(2), None, 90),
    Block.at(3): BlockFit(torch.ones(2, 1), None, 1.0, 90),
}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_refit(FITS, tmp_path)
    found = read_refit(tmp_path)
    assert found.keys() == FITS.keys()
    for block, fit in FITS.items():
        assert (found[block].ridge, found[block].tokens) == (fit.ridge, fit.tokens)
        for mine, its in ((found[block].weight, fit.weight), (found[block].bias, fit.bias)):
            assert (mine is None) == (its is None)
            assert mine is None or its is None or torch.equal(mine, its)


def test_the_same_refit_gives_the_same_bytes(tmp_path: Path) -> None:
    contents = set()
    for _ in range(30):
        write_refit(FITS, tmp_path)
        contents.add((tmp_path / REPAIR_NAME).read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize("metadata", [None, {"refit": "no JSON"}, {"refit": "{}"}, {"refit": '{"format": "x"}'}])
def test_a_file_that_is_not_one_is_refused_by_name(tmp_path: Path, metadata: dict[str, str] | None) -> None:
    save_file({"1.weight": torch.ones(1)}, tmp_path / REPAIR_NAME, metadata)
    with pytest.raises(PlanError, match=REPAIR_NAME):
        read_refit(tmp_path)
