"""An export hands out what the pass had made by then, and tries nothing."""

import json
from pathlib import Path

import pytest

from axformer.plan.elements import Dimensions
from axformer.plan.path import Stop, file_at
from axformer.plan.plan import parse_plan_file
from axformer.wire.states import JobKind
from store.repositories.jobs import NewJob
from store.repositories.trials import create_export
from store.session import session_scope
from store.states import JobState
from tests.tiny_models import tiny_rows, write_rows
from tests.worker.conftest import Open, Post, Watch
from tests.worker.job.test_runner import FILES, NEVER, Claim, artifacts_of, content_of
from worker.base.context import WorkerContext
from worker.job.runner import run_job

_COPIED = ("team_id", "spec")
KNOBS = {"attention_top_k": 3, "majority_fraction": 0.2}


def export(context: WorkerContext, watch: Watch, job_id: str, seq: int) -> str:
    source = watch.job(job_id)
    same = {name: getattr(source, name) for name in _COPIED}
    assert source.progress is not None
    with session_scope(context.sessions) as session:
        new = NewJob(name="export", kind=JobKind.EXPORT, exported_from=job_id, upto=seq, **same)
        return create_export(session, new, source.progress).job.id


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"confirm": 0.5, "tolerance": 0.2}], ids=["plain", "confirmed"])
def test_every_point_of_a_path_is_handed_out_as_the_pass_had_made_it(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open, more: dict[str, float]
) -> None:
    job_id = post(test={"uri": opened.uri("test.jsonl")}, knobs=KNOBS | more)
    run_job(context, claim(), NEVER)
    trace, path = watch.trials(job_id), watch.path(job_id)
    assert path is not None
    assert len(path) > 2
    plan = parse_plan_file(content_of(context, artifacts_of(context, job_id)["plan.json"]).decode())
    dimensions = Dimensions(**(watch.job(job_id).progress or {})["dimensions"])
    for point in (path[0], path[1], path[-1]):
        made = export(context, watch, job_id, point["seq"])
        run_job(context, claim(), NEVER)
        job, artifacts = watch.job(made), artifacts_of(context, made)
        assert (job.state, job.error) == (JobState.SUCCEEDED, None)
        assert set(artifacts) >= FILES
        assert watch.trials(made) == trace[: point["seq"] + 1]
        exported = parse_plan_file(content_of(context, artifacts["plan.json"]).decode())
        assert exported == file_at(plan, Stop(trace, point["seq"]), dimensions)
        report = json.loads(content_of(context, artifacts["report.json"]))
        latency = {"estimated_latency_ms": report["base"]["latency_ms"] / point["estimated_speedup"]}
        assert report["path"][-1] == point | {"kept": True} | latency  # which is measured anew
        assert report["pruned"]["parameters"] == point["parameters"]
        assert report["target"]["reached"]
        assert report["target"]["sentence"].startswith("This model was chosen from the path: ")


def test_an_export_fails_where_the_data_have_changed(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, tmp_path: Path
) -> None:
    data = write_rows(tmp_path / "validation.jsonl", tiny_rows(40))
    job_id = post(knobs=KNOBS, validation={"uri": f"file://{data}"})
    run_job(context, claim(), NEVER)
    write_rows(data, tiny_rows(9))
    made = export(context, watch, job_id, 0)
    run_job(context, claim(), NEVER)
    assert watch.job(made).state is JobState.FAILED
    assert "the content of validation has changed" in (watch.job(made).error or {})["message"]
