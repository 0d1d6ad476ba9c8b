"""The path of a job on the command line."""

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
        "confirming": None,
        "test": {"loss": 0.6 - seq / 10, "accuracy": 0.75},
        "parameters": 1_000_000 - 100_000 * seq,
        "encoder_parameters": 400_000 - 100_000 * seq,
        "operations": 900,
        "encoder_operations": 800,
        "estimated_speedup": 1.0 + seq / 10,
        "estimated_latency_ms": 22.0 / (1 + seq / 10),
        "kept": seq == 1,
    }
    for seq, element in ((0, None), (1, "layer.1.ffn"))
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
    assert "0 (untouched) 0.5000 – 0.6000 100.0% 100.0% 1.00x 22.00 ms" in lines
    assert "→ 1 layer.1.ffn 0.4000 – 0.5000 90.0% 75.0% 1.10x 20.00 ms" in lines
    assert answered("path", done) == {"kept": 1, "data": PATH}


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
