"""The path of a finished pass: what the report says of it, for the team alone, and nothing before the end."""

import pytest

from axformer.trial import Verdict


def point(seq: int, **changes):
    """A point of a path as reports hold it."""
    plain = {
        "seq": seq,
        "element": f"layer.{seq}.ffn" if seq else None,
        "loss": 1 / (seq + 3),
        "confirming": {"loss": 0.5 + seq, "accuracy": 0.75},
        "test": None,
        "parameters": 1000 - 100 * seq,
        "operations": 9000 - 100 * seq,
        "estimated_speedup": 9000 / (9000 - 100 * seq),
        "kept": False,
    }
    return plain | changes


PATH = [point(0), point(1, kept=True), point(3)]


@pytest.fixture
def finished(stage, make_trial) -> str:
    """A job that has succeeded with the model of its first acceptance."""
    accepted = {"verdict": Verdict.ACCEPT}
    trials = [make_trial(0), make_trial(1, **accepted), make_trial(2), make_trial(3, **accepted)]
    size = {"layers": 4, "heads": 2, "hidden_size": 8, "intermediate_size": 12}
    job_id = stage.running(trials, {"dimensions": size, "done": 4, "known": 4, "seconds": 1.0})
    stage.succeed(job_id, {}, path=PATH)
    return job_id


def test_it_is_that_of_the_report(api, finished):
    answer = api.get(f"/v1/jobs/{finished}/path")
    assert answer.status_code == 200
    assert answer.json() == {"kept": 1, "data": PATH}


def test_the_job_leads_to_it_and_does_not_carry_it(api, finished):
    job = api.get(f"/v1/jobs/{finished}").json()
    assert job["links"]["path"] == f"/v1/jobs/{finished}/path"
    assert "path" not in job["report"]


def test_there_is_none_before_the_end(api, stage, make_trial):
    running = stage.running([make_trial(0), make_trial(1, verdict=Verdict.ACCEPT)])
    assert api.get(f"/v1/jobs/{running}/path").json() == {"kept": None, "data": []}


def test_results_of_workers_that_told_no_path_have_none(api, stage, make_trial):
    assert api.get(f"/v1/jobs/{stage.succeeded({}, [make_trial(0)])}/path").json() == {"kept": None, "data": []}


def test_other_teams_see_no_job(client, rivals, finished):
    answer = client.get(f"/v1/jobs/{finished}/path", headers=rivals.headers)
    assert (answer.status_code, answer.json()["code"]) == (404, "job_not_found")


def test_a_finished_job_says_whether_its_gain_is_one(api, stage, make_trial):
    finding = {
        "data": "test",
        "verdict": "no_reliable_gain",
        "sentence": "No reliable gain.",
        "advice": "",
        "answers": "",
    }
    job_id = stage.running([make_trial(0)])
    stage.succeed(job_id, {}, finding=finding)
    assert api.get(f"/v1/jobs/{job_id}").json()["report"]["finding"] == finding
