"""``axformer knobs``: what it says of a knob is what the library takes."""

import json

import pytest
from typer.testing import CliRunner

from axformer.cli.main import app
from axformer.config import KNOBS, METHODS, Preset, PublishedConfig, make_config, parse_knob
from axformer.wire.knob_list import list_knobs

NAMES = [knob.name for knob in list_knobs().knobs]


def said(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["knobs", *arguments], env={"COLUMNS": "1000"})
    assert done.exit_code == 0, done.output
    return done.output


def test_every_knob_is_in_the_list_with_its_default() -> None:
    lines = {line.split()[0]: line for line in said().splitlines() if line.strip()}
    assert set(KNOBS) <= lines.keys()
    assert "0.5" in lines["majority_fraction"].split()


@pytest.mark.parametrize("name", NAMES)
def test_a_knob_is_explained_and_the_line_that_sets_it_is_taken(name: str) -> None:
    text = said(name)
    knob = next(one for one in list_knobs().knobs if one.name == name)
    assert " ".join(knob.reason.replace("``", "").split()[:5]) in text
    line = next(line for line in text.splitlines() if line.startswith("to set it"))
    if not line.rstrip().endswith("VALUE"):
        key, value = parse_knob(line.split("--set ")[1].strip())
        assert key == name
        method = value if name == "method" else knob.methods[0]
        kind = PublishedConfig if knob.paper_only else METHODS[method]
        kind.model_validate({name: value})


def test_presets_and_goals_that_set_a_knob_are_named() -> None:
    assert make_config(Preset.ROBUST).model_dump()["safeguard"] == 5
    text = said("safeguard")
    assert "5 in robust" in text
    assert "5 in no-worse" in text
    assert "2.0 in speedup=2" in said("target_speedup")


def test_an_unknown_knob_is_refused_with_the_nearest() -> None:
    done = CliRunner().invoke(app, ["knobs", "target_speed"])
    assert done.exit_code != 0
    assert "did you mean target_speedup?" in done.output + done.stderr


def test_knobs_are_also_json() -> None:
    (one,) = json.loads(said("budgets", "--json"))
    assert one["name"] == "budgets"
    assert one["methods"] == ["compress"]
