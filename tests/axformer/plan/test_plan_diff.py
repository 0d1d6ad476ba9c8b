"""What two plans do unlike: nothing is left out, nothing is made up."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from typer.testing import CliRunner

from axformer.cli.main import app
from axformer.errors import PlanError
from axformer.plan.diff import differences
from axformer.plan.plan import Plan, PlanFile, PlanSource, kept_neurons
from tests.plans import plans
from tests.tiny_families import DIMENSIONS

FULL = Plan.full(DIMENSIONS)


def numbers(text: str) -> set[int]:
    """The numbers that ranges stand for."""
    ends = [part.split("-") for part in text.split(", ") if part]
    return {number for low, *high in ends for number in range(int(low), int(high[0] if high else low) + 1)}


@given(first=plans(DIMENSIONS), second=plans(DIMENSIONS))
def test_the_differences_lead_from_one_plan_to_the_other(first: Plan, second: Plan) -> None:
    found = {(one.layer, one.part): one for one in differences(first, second)}
    for index, (one, other) in enumerate(zip(first.layers, second.layers, strict=True)):
        assert ((index, "layer") in found) == (one.dropped != other.dropped)
        if one.dropped != other.dropped:
            assert [part for place, part in found if place == index] == ["layer"]
            continue
        assert ((index, "attention") in found) == (one.attention != other.attention)
        assert ((index, "ffn") in found) == (one.ffn != other.ffn)
        assert ((index, "hard attention") in found) == (one.hard_attention != other.hard_attention)
        for part, kept, wanted in (
            ("heads", one.heads, other.heads),
            ("neurons", kept_neurons(one), kept_neurons(other)),
        ):
            change = found.get((index, part))
            lost, gained = (set(), set()) if change is None else (numbers(change.first), numbers(change.second))
            assert (set(kept) - lost) | gained == set(wanted)


def test_plans_of_different_models_are_refused() -> None:
    with pytest.raises(PlanError, match="have 4 and 1 layers"):
        differences(FULL, Plan(layers=FULL.layers[:1]))


def write_plan(path: Path, plan: Plan) -> Path:
    source = PlanSource(model_type="bert", sha256="0" * 64)
    path.write_text(PlanFile(source=source, config={}, layers=plan.layers).model_dump_json())
    return path


def test_the_command(tmp_path: Path) -> None:
    first = write_plan(tmp_path / "first.json", FULL)
    heads = FULL.layers[1].model_copy(update={"heads": FULL.layers[1].heads[1:]})
    second = write_plan(tmp_path / "plan.json", Plan(layers=(FULL.layers[0], heads, *FULL.layers[2:])))
    run = CliRunner().invoke
    same = run(app, ["diff", str(first), str(first)])
    assert (same.exit_code, same.output) == (0, "The plans leave the same model.\n")
    unlike = run(app, ["diff", "--json", str(first), str(tmp_path)])
    assert (unlike.exit_code, json.loads(unlike.output)) == (
        1,
        [{"layer": 1, "part": "heads", "first": "0", "second": ""}],
    )
    shown = run(app, ["diff", str(first), str(second)])
    assert shown.exit_code == 1
    assert shown.output.splitlines()[-2].split() == ["1", "heads", "0", "-"]
    (tmp_path / "bad.json").write_text("{}")
    for file in ("bad.json", "nowhere.json"):
        refused = run(app, ["diff", str(first), str(tmp_path / file)])
        assert refused.exit_code == 2
        assert refused.stderr.startswith("error: ")
        assert file in refused.stderr
