"""Measure how fast all forms of a finished result are, and nothing else, in the minutes in which a machine is quiet.

    python -m benchmarks.forms_speed RESULT CHECKPOINT --data FILE

leaves ``RESULT/speed.json``: the cells of the untouched checkpoint in stock transformers and of each form, on batches of the
data's own rows, all taking turns in one run. ``benchmarks.forms_table`` takes them for those of ``report.json``, which are
measured in less time while a pass ends.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from transformers import AutoTokenizer

from axformer.config import PassConfig
from axformer.data.columns import Columns
from axformer.data.reading import read_rows
from axformer.forms.kinds import BASE, KINDS
from axformer.intake.dataset import prepare
from axformer.plan.plan import read_plan_file
from axformer.reporting.bench import compact_checkpoint
from axformer.reporting.environment import describe
from axformer.reporting.speed import THOROUGH, Effort, measure_speed
from axformer.reporting.workloads import REPORTED, limits_of, own_workloads

SPEED_FILE = "speed.json"
BATCHES = (1, 32)
"""Those of the table."""


def measure(result: Path, checkpoint: Path, data: Path, effort: Effort) -> dict[str, Any]:
    """The content of ``speed.json``.

    Args:
        result: the directory that a pass wrote.
        checkpoint: what the pass began with.
        data: rows that the pass decided by.
        effort: of each measurement.
    """
    compact = compact_checkpoint(result, "cpu")
    config = PassConfig(max_length=read_plan_file(result).config.get("max_length"))
    encoded = prepare(read_rows(str(data), Columns()), compact, config).samples.encoded
    tokenizer = AutoTokenizer.from_pretrained(result / KINDS["compact"].directory)
    limits = limits_of(compact.head, compact.model.config, compact.architecture.max_tokens(compact.model.config))
    loads = own_workloads(encoded, tokenizer, limits, REPORTED)
    models = {BASE.name: BASE.load(checkpoint, "cpu")}
    models |= {kind.name: kind.load(result / kind.directory, "cpu") for kind in KINDS.values() if kind.is_in(result)}
    cells = measure_speed(list(models.values()), loads, effort)
    speed = {name: [cell.model_dump(mode="json") for cell in own] for name, own in zip(models, cells, strict=True)}
    return {"speed": speed, "environment": describe("cpu")}


def main(
    result: Annotated[Path, typer.Argument(help="directory of a finished pass")],
    checkpoint: Annotated[Path, typer.Argument(help="what the pass began with")],
    data: Annotated[Path, typer.Option(help="the rows that decided")],
    threads: Annotated[int | None, typer.Option(help="of each model; as many as PyTorch takes where null")] = None,
) -> None:
    """Write the speed of each form."""
    if threads is not None:
        torch.set_num_threads(threads)
    found = measure(result, checkpoint, data, THOROUGH)
    (result / SPEED_FILE).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
