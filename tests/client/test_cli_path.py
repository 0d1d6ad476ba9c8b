"""The path of a job on the command line."""

import json
from pathlib import Path

import pytest

from axformer.client import Client
from tests.api.conftest import Stage, trial
from tests.client.commands import answered, logged_in, ran, run

PROGRESS = {"done": 2, "known": 2, "seconds": 1.0, "inputs": {}}
PATH = [
    {
        "seq": seq,
        "element": element,
        "loss": 0.5 - seq / 10,
        "deciding": None,
        "confirming": None,
        "unlabelled": None,
        "test": {"loss": 0.6 - seq / 10, "accuracy": accuracy},
        "parameters": 1_000_000 - 100_000 * seq,
        "encoder_parameters": 400_000 - 100_000 * seq,
        "operations": 900,
        "encoder_operations": 800,
        "estimated_speedup": 1.0 + seq / 10,
        "estimated_latency_ms": 22.0 / (1 + seq / 10),
        "kept": seq == 1,
        "deployed": None,
    }
    for seq, element, accuracy in (
        (0, None, 0.75),
        (1, "layer.1.ffn", 0.735),
        (2, "layer.2.ffn", 0.66),
        (3, "layer.3.ffn", 0.72),
    )
]


@pytest.fixture
def done(stage: Stage) -> str:
    """A job that has accepted trial 1."""
    job_id = stage.running([trial(0), trial(1, verdict="accept")], PROGRESS, config={"order": "auto"})
    stage.succeed(job_id, {}, path=PATH)
    return job_id


@logged_in
def test_it_shows_every_model_and_the_one_that_was_kept(done: str) -> None:
    lines = [" ".join(line.split()) for line in ran("path", done).splitlines()]
    assert "0 (untouched) +0.00 1.00 100.0% 100.0%" in lines
    assert "→ 1 layer.1.ffn -1.50 1.10 90.0% 75.0%" in lines
    assert not any(line.startswith("2 ") for line in lines)  # trial 3 is as fast and better
    lines = [" ".join(line.split()) for line in ran("path", done, "--all").splitlines()]
    assert "2 layer.2.ffn -9.00 1.20 0.3000 – 0.4000 80.0% 50.0%" in lines
    assert answered("path", done) == {"kept": 1, "data": PATH}


@logged_in
def test_it_names_the_model_to_take_for_a_wish_of_a_job_and_of_a_local_result(done: str, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps({"path": PATH, "config": {"method": "axformer"}}))
    for source in (done, tmp_path):
        within = ran("path", source, "--within", 2)
        assert "Trial 1: held-out accuracy -1.50 points (0.7500 → 0.7350), about 1.10 times as fast, 90.0%" in within
        assert "It is the result itself." in within
        fast = ran("path", source, "--speedup", 1.2)
        assert "Trial 3: held-out accuracy -3.00 points" in fast
        assert ("--export 3" if source is done else "--upto 3") in fast
        assert answered("path", source, "--within", 0)["seq"] == 0
        for wish in (["--speedup", 2], ["--within", 2, "--speedup", 1.2]):
            missed = run("path", source, *wish)
            assert missed.exit_code == 3
            assert f"is {wish[-1]:g} times as fast" in missed.stdout


@pytest.mark.parametrize(
    ("config", "finetune", "needs_rows"),
    [
        ({"method": "layers"}, {"epochs": 3}, True),
        ({"method": "layers"}, None, False),
        ({"method": "rank", "finetune_each": 1}, {"epochs": 1}, True),
        ({"method": "axformer"}, {"epochs": 1}, False),  # the kept model alone was trained
    ],
)
def test_training_rows_are_asked_for_where_the_models_of_a_path_were_trained(
    tmp_path: Path, config: dict[str, object], finetune: dict[str, int] | None, needs_rows: bool
) -> None:
    report = {"path": PATH, "config": config, "finetune": finetune}
    (tmp_path / "report.json").write_text(json.dumps(report))
    assert ("--upto 3 --train TRAIN" in ran("path", tmp_path, "--speedup", 1.2)) is needs_rows


def test_a_directory_without_a_report_is_no_result(tmp_path: Path) -> None:
    refused = run("path", tmp_path)
    assert refused.exit_code == 2
    assert "is no result of a run: there is no report.json in it" in refused.stderr


@logged_in
def test_a_model_is_exported_by_its_trial(done: str, api: Client) -> None:
    made = ran("path", done, "--export", 1, "--forms", "onnx").strip()
    job = api.job(made)
    assert (job.exported_from, job.upto, job.forms) == (done, 1, ["compact", "onnx"])
    refused = run("path", done, "--export", 7)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "trial 7 of job" in refused.stderr


@logged_in
def test_a_job_on_its_way_has_none(stage: Stage) -> None:
    result = run("path", stage.queued())
    assert (result.exit_code, result.stdout) == (0, "")
    assert "has not succeeded" in result.stderr
