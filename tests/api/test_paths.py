"""The path of a finished pass: what the report says of it, for the team alone, and nothing before the end."""

from dataclasses import asdict

import pytest

from axformer.config import PassConfig
from axformer.plan.elements import Dimensions
from axformer.plan.path import points_of
from axformer.plan.plan import Plan, PlanFile, PlanSource, parse_plan_file
from axformer.plan.trial import Verdict

SIZE = Dimensions(layers=4, heads=2, hidden_size=8, intermediate_size=12)


def point(seq: int, **changes):
    """A point of a path as reports hold it."""
    plain = {
        "seq": seq,
        "element": f"layer.{seq}.ffn" if seq else None,
        "loss": 1 / (seq + 3),
        "deciding": None,
        "confirming": {"loss": 0.5 + seq, "accuracy": 0.75},
        "unlabelled": None,
        "test": None,
        "parameters": 1000 - 100 * seq,
        "encoder_parameters": 500 - 100 * seq,
        "operations": 9000 - 100 * seq,
        "encoder_operations": 8000 - 100 * seq,
        "estimated_speedup": 9000 / (9000 - 100 * seq),
        "estimated_latency_ms": 18.0 * (9000 - 100 * seq) / 9000,
        "kept": False,
        "deployed": None,
    }
    return plain | changes


PATH = [point(0), point(1, kept=True), point(3)]


@pytest.fixture
def finished(stage, make_trial) -> str:
    """A job that has succeeded with the model of its first acceptance."""
    accepted = {"verdict": Verdict.ACCEPT}
    trials = [make_trial(0), make_trial(1, **accepted), make_trial(2), make_trial(3, **accepted)]
    job_id = stage.running(trials, {"dimensions": asdict(SIZE), "done": 4, "known": 4, "seconds": 1.0})
    kept = points_of(trials, SIZE, None)[1].plan
    source = PlanSource(model_type="bert", sha256="0" * 64)
    plan = PlanFile(source=source, config=PassConfig().model_dump(mode="json"), layers=kept.layers)
    stage.succeed(job_id, {"plan.json": plan.model_dump_json().encode()}, path=PATH)
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


def test_any_model_on_the_path_has_its_plan(api, finished, make_trial):
    accepted = {"verdict": Verdict.ACCEPT}
    points = points_of([make_trial(0), make_trial(1, **accepted), make_trial(3, **accepted)], SIZE, None)
    written = parse_plan_file(api.get(f"/v1/jobs/{finished}/artifacts/plan.json").text)
    for point in points:
        answer = api.get(f"/v1/jobs/{finished}/path/{point.seq}/plan")
        plan = parse_plan_file(answer.text)
        assert plan.plan == point.plan
        assert (plan.source, plan.config) == (written.source, written.config)
    assert points[0].plan == Plan.full(SIZE)
    assert api.get(f"/v1/jobs/{finished}/path/1/plan").json() == written.model_dump(mode="json")


def test_a_trial_that_was_not_accepted_has_no_plan(api, finished):
    for seq in (2, 4, 2**63 - 1):
        answer = api.get(f"/v1/jobs/{finished}/path/{seq}/plan")
        assert (answer.status_code, answer.json()["code"]) == (404, "point_not_found")
    for seq in ("-1", str(2**63), "x", "1.5"):
        assert api.get(f"/v1/jobs/{finished}/path/{seq}/plan").status_code == 422


def test_a_job_that_has_not_succeeded_has_no_plan(api, stage, make_trial):
    answer = api.get(f"/v1/jobs/{stage.running([make_trial(0)])}/path/0/plan")
    assert (answer.status_code, answer.json()["code"]) == (404, "artifact_not_found")


@pytest.mark.parametrize("content", [b"{}", b"\xff", b"", b'{"layers": []}'])
def test_a_plan_that_is_none_is_told_as_missing(api, stage, make_trial, content):
    """Workers hand on what a job's confined process has written."""
    for progress in ({"dimensions": asdict(SIZE)}, {}):
        job_id = stage.running([make_trial(0)], progress)
        stage.succeed(job_id, {"plan.json": content})
        answer = api.get(f"/v1/jobs/{job_id}/path/0/plan")
        assert (answer.status_code, answer.json()["code"]) == (404, "point_not_found")
        assert "does not go with its trace" in answer.json()["detail"]
