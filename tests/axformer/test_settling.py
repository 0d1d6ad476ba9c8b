"""A run is settled once, says which field is wrong, and is the same as command, as JSON and in Python."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import axformer
from axformer.config import Preset
from axformer.errors import ConfigError
from axformer.plan.plan import read_plan_file
from axformer.wire.run import FORMS, Run, command, read_run
from tests.axformer.analysis.commands import parsed
from tests.test_documented_commands import run_options
from tests.tiny_models import tiny_model, tiny_rows, tiny_tokenizer

PLAIN = {"checkpoint": "model", "validation": "dev.jsonl"}

TEXTS = (
    st.text("abcé ./-_'\"$", min_size=1, max_size=12)
    .map(str.strip)
    .filter(lambda text: text and not text.startswith("-"))
)
KNOBS = st.fixed_dictionaries(
    {},
    optional={
        "seed": st.integers(0, 9),
        "confirm": st.sampled_from([0.2, 0.4]),
        "max_length": st.one_of(st.none(), st.integers(2, 512)),
        "accept_poor_model": st.booleans(),
    },
)
WISHES = st.one_of(
    st.just({}),
    st.sampled_from(["no-worse", "within-points=1.5", "speedup=2", "as-paper"]).map(lambda goal: {"goal": goal}),
    st.sampled_from([preset.value for preset in Preset]).map(lambda preset: {"preset": preset}),
)
RUNS = st.builds(
    lambda wish, knobs, sources, forms: {**PLAIN, **sources, **wish, "config": knobs, **forms},
    WISHES,
    KNOBS,
    st.fixed_dictionaries({"checkpoint": TEXTS, "validation": TEXTS}, optional={"test": TEXTS}),
    st.fixed_dictionaries({}, optional={"forms": st.lists(st.sampled_from(FORMS), min_size=1, unique=True)}),
)


@pytest.mark.parametrize(
    ("fields", "wrong", "said"),
    [
        ({"goal": "speedup=2", "preset": "paper"}, "goal", "leave goal 'speedup=2' or preset 'paper' out"),
        ({"goal": "sped=2"}, "goal", "did you mean speedup?"),
        ({"config": {"sed": 1}}, "config", "knob 'sed' is unknown; did you mean seed?"),
        ({"preset": "smallest", "config": {"method": "rank"}}, "config", "is of method=compress"),
        ({"calibrate": "texts.jsonl", "preset": "paper"}, "calibrate", "leave it out"),
        ({"finetune": {"epochs": 2}}, "finetune", "give train too"),
        ({"train": "train.jsonl", "finetune": {"epoch": 2}}, "finetune", "did you mean epochs?"),
        ({"train": "train.jsonl", "finetune": {"temperature": 3}}, "finetune", "set teacher=true too"),
        ({"head": {"task": "regression"}}, "head", "give train too"),
        (
            {"preset": "smallest", "config": {"polish": 1}, "train": "train.jsonl"},
            "train",
            "give these rows as calibrate",
        ),
        ({"config": {"method": "rank", "finetune_each": 1}}, "config", "give train too"),
        ({"forms": ["onx"]}, "forms", "'onnx'"),
        ({"validaton": "dev.jsonl"}, "validaton", "did you mean validation?"),
    ],
)
def test_an_error_names_the_field_and_the_remedy(fields: dict[str, Any], wrong: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_run(PLAIN | fields).settled()
    assert refused.value.field == wrong
    assert said in str(refused.value)


@given(RUNS)
def test_the_command_of_a_run_makes_the_same_run(fields: dict[str, Any]) -> None:
    run = read_run(fields)
    again = run_options(parsed(command(run))).run()
    assert again.settled().model_copy(update={"run": run}) == run.settled()
    assert (again.checkpoint, again.data(), again.goal, again.preset) == (
        run.checkpoint,
        run.data(),
        run.goal,
        run.preset,
    )
    assert again.config == run.config


@given(RUNS)
def test_a_run_is_given_back_as_it_was_written(fields: dict[str, Any]) -> None:
    run = read_run(fields)
    again = Run.model_validate_json(json.dumps(run.given()))
    assert again == run
    assert again.given() == run.given()
    assert run.given()["config"] == fields["config"]


def test_settling_does_not_change_what_a_run_asks_for() -> None:
    run = read_run(PLAIN | {"goal": "within-points=1", "calibrate": "texts.jsonl", "forms": ["onnx", "onnx"]})
    settled = run.settled()
    assert settled.run == run
    assert settled.forms == ["compact", "onnx"]
    assert (settled.preset, settled.knobs.method) == (Preset.SMALLEST, "compress")
    assert settled.knobs.confirm > read_run(PLAIN | {"goal": "within-points=1"}).settled().knobs.confirm
    assert settled.knobs.model_dump(mode="json") == settled.config


@pytest.mark.slow
def test_python_has_the_goals_and_the_defaults_of_the_command(tmp_path: Path) -> None:
    rows = tiny_rows(60)
    asked = {"goal": "speedup=1.2", "test": rows, "forms": ["stock"], "output": tmp_path / "result", "table_rows": 16}
    result = axformer.prune(tiny_model(), tiny_tokenizer(), rows, accept_poor_model=True, **asked)
    assert result.report is not None
    assert result.report["pruned"]["test"]["loss"] > 0
    assert result.report["config"]["method"] == "compress"
    written = json.loads((tmp_path / "result/run.json").read_text())
    assert (written["goal"], written["validation"]) == ("speedup=1.2", {"uri": "memory"})
    assert read_plan_file(tmp_path / "result").plan == result.plan
    assert not any("Repeat it with" in line for line in (tmp_path / "result/README.md").read_text().splitlines())
    plain = axformer.prune(tiny_model(), tiny_tokenizer(), rows, accept_poor_model=True)
    robust = axformer.prune(tiny_model(), tiny_tokenizer(), rows, preset="robust", accept_poor_model=True)
    assert [trial.verdict for trial in plain.trace] == [trial.verdict for trial in robust.trace]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"forms": ["onnx"]}, "give output too"),
        ({"goal": "speedup=2", "preset": "paper"}, "leave goal"),
        ({"config": {"seed": 1}, "sed": 2}, "did you mean seed?"),
    ],
)
def test_python_refuses_what_the_command_refuses(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        axformer.prune(tiny_model(), tiny_tokenizer(), tiny_rows(20), **more)
