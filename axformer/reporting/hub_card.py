"""The short card of ``hub/`` where no report tells what the model costs: what it is, and how its graphs differ from PyTorch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from huggingface_hub import ModelCardData

from axformer.artifact import write_texts
from axformer.forms.form import Form, NotMade
from axformer.forms.kinds import HUB, KINDS, ONNX, seen_from
from axformer.intake.checkpoint import Checkpoint
from axformer.reporting.card import CARD
from axformer.reporting.card_forms import loading_forms, loading_of
from axformer.reporting.card_metadata import plain_name
from axformer.reporting.rendering import UNKNOWN, Table, number
from axformer.wire.references import shown_name
from axformer.wire.report import SpeedCell


def write_hub_card(
    result: Path,
    checkpoint: Checkpoint,
    reference: str | Path,
    made: str,
    rows: str,
    forms: Sequence[Form | NotMade],
    speeds: Mapping[str, SpeedCell] = MappingProxyType({}),
) -> None:
    """Write ``README.md`` into ``hub/``; nothing if none of its forms was made.

    Args:
        result: the directory that holds ``hub/``.
        checkpoint: the model of the forms, or the one that it was cut from.
        reference: where that came from; only its name is told.
        made: how the forms' model was made, as a sentence.
        rows: what the graphs were compared on, for people: ``24 built-in sentences``.
        forms: what was made.
        speeds: of each form with one input, by name; empty where none was measured.
    """
    inside = [form for form in forms if isinstance(form, Form) and KINDS[form.name].directory == HUB]
    if not inside:
        return
    name, loading = plain_name(shown_name(str(reference))), loading_of(checkpoint.task, checkpoint.head)
    data = ModelCardData(library_name=ONNX, model_name=name, pipeline_tag=loading.tag, tags=["axformer"])
    programs = [
        f"`{one.where}`: {one.summary}.\n\n```python\n{program}\n```\n"
        for one in loading_forms((form.name for form in inside), loading, HUB)
        for program in one.programs
    ]
    text = f"""---
{data.to_yaml()}
---
# {name} in ONNX

`{name}` is a `{checkpoint.architecture.model_type}` for {loading.tag}. {made}
Each graph was loaded in a fresh process and compared with the same model in PyTorch on {rows}.
**Nothing is claimed about accuracy**, since that takes labels.

{_table(inside, speeds).markdown()}

## How to load it

{chr(10).join(programs)}"""
    write_texts(result / HUB, {CARD: text})


def _table(forms: Sequence[Form], speeds: Mapping[str, SpeedCell]) -> Table:
    timed = ["one input, ms", "times as fast as PyTorch"] if speeds else []
    return Table(
        ["graph", "MB", "same answers", "logits differ by", *timed],
        [[*_row(form), *(_timed(speeds[form.name]) if speeds else ())] for form in forms],
    )


def _row(form: Form) -> list[str]:
    assert form.checked is not None, "make_forms compares it over all rows"
    return [
        f"`{seen_from(KINDS[form.name].place, HUB)}`",
        f"{form.bytes / 1e6:.1f}",
        number(form.checked.same, ".1%"),
        f"{form.checked.agreement.difference:.1e}",
    ]


def _timed(cell: SpeedCell) -> list[str]:
    ends = "" if cell.times_interval is None else " [{:.1f}, {:.1f}]".format(*cell.times_interval)
    return [f"{cell.p50_ms:.2f}", UNKNOWN if cell.times is None else f"{cell.times:.1f}{ends}"]
