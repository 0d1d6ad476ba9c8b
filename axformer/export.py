"""More forms of a finished result, without its checkpoint."""

from collections.abc import Collection, Sequence
from pathlib import Path

from axformer.artifact import new_directory
from axformer.config import reading_config
from axformer.data.columns import DataSource
from axformer.data.reading import read_rows
from axformer.errors import ConfigError
from axformer.forms.form import Form, NotMade
from axformer.forms.kinds import ONNX, ONNX_FP16, ONNX_INT8, STOCK
from axformer.forms.make import Finished, make_forms
from axformer.intake.dataset import prepare
from axformer.plan.plan import read_plan_file
from axformer.reporting.bench import compact_checkpoint
from axformer.reporting.hub_card import write_hub_card

FROM_COMPACT = (STOCK, ONNX, ONNX_FP16, ONNX_INT8)
"""The forms that can be made from the compact one."""
_FROM_A_RESULT = "It was made smaller; the card of its result says what was removed, and what that cost."


def export(
    result: Path, data: DataSource, output: Path, *, forms: Collection[str], device: str = "cpu"
) -> Sequence[Form | NotMade]:
    """Write forms of a result's compact model, each in its own directory.

    Args:
        result: the directory that a pass wrote.
        data: real inputs; every form is compared on all of them with the compact model.
        output: a directory that is empty or does not exist. If anything fails, nothing is left there.
        forms: names from ``FROM_COMPACT``.
        device: the device that PyTorch computes on.

    Returns:
        Each form, or why this model cannot have it.

    Raises:
        InputError: there is no result, it is damaged, the data does not fit it, or a form needs the checkpoint.
    """
    for name in forms:
        if name not in FROM_COMPACT:
            raise ConfigError(
                f"--forms '{name}' cannot be made of a result alone; there are {', '.join(FROM_COMPACT)}. With the checkpoint "
                "before the pass, axformer apply makes all"
            )
    rows = read_rows(data.path, data.columns)
    file, compact = read_plan_file(result), compact_checkpoint(result, device).for_rows(rows)
    samples = prepare(rows, compact, reading_config(file.config)).samples
    with new_directory(output) as draft:
        made = make_forms(Finished(compact, file.plan, compact.model, samples), forms, draft)
        write_hub_card(draft, compact, result, _FROM_A_RESULT, f"{len(samples):,} rows", made)
    return made
