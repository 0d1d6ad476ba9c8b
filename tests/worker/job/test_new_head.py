"""A job with a base model: its new head is trained first, also over a pause, and the trained model lies in the result."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient
from transformers import AutoModel, AutoModelForSequenceClassification

from api.main import create_app
from axformer.plan.plan import parse_plan_file
from axformer.wire.scopes import Scope
from store.repositories.keys import create_key
from store.repositories.steering import request_pause, resume_job
from store.session import session_scope
from store.states import JobState
from store.tables.teams import Team
from tests.tiny_models import tiny_config, tiny_rows, tiny_tokenizer, write_rows
from tests.worker.conftest import GUESSING, Post, Watch
from tests.worker.job.test_exports import export
from tests.worker.job.test_runner import (
    CHECKPOINTS,
    NEVER,
    Claim,
    artifacts_of,
    at_a_checkpoint,
    content_of,
    left_behind,
)
from worker.base.context import WorkerContext
from worker.job.opening import BEGINS_ANEW
from worker.job.runner import run_job

KNOBS = {"method": "layers", "drop": 1, **GUESSING}
LESSONS = {"epochs": 2, "batch_size": 5, "learning_rate": 1e-3}
HEAD = {"task": "classification", "labels": ["no", "yes"]}
TRAINED = "untouched/model.safetensors"
ROWS = 30


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, Any]:
    """A job with a bare encoder."""
    AutoModel.from_config(tiny_config()).save_pretrained(tmp_path / "base")
    tiny_tokenizer().save_pretrained(tmp_path / "base")
    for name, count in (("validation", 40), ("train", ROWS)):
        rows = [row | {"label": HEAD["labels"][int(str(row["label"]))]} for row in tiny_rows(count, seed=count)]
        write_rows(tmp_path / f"{name}.jsonl", rows)
    inputs = {name: {"uri": f"file://{tmp_path}/{name}.jsonl"} for name in ("validation", "train")}
    return {
        **inputs,
        "checkpoint": {"uri": f"file://{tmp_path}/base"},
        "finetune": LESSONS,
        "head": HEAD,
        "knobs": KNOBS,
    }


@pytest.mark.slow
def test_a_job_trains_the_head_and_hands_out_the_trained_model(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, asked: dict[str, Any]
) -> None:
    job_id = post(**asked)
    run_job(context, claim(), NEVER)
    job, artifacts = watch.job(job_id), artifacts_of(context, job_id)
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    report = json.loads(content_of(context, artifacts["report.json"]))
    assert (report["head"]["task"], report["head"]["labels"]) == (HEAD["task"], HEAD["labels"])
    assert job.summary is not None
    assert job.summary["head"]["curve"] == []
    config = json.loads(content_of(context, artifacts["untouched/config.json"]))
    assert config["label2id"] == {"no": 0, "yes": 1}
    plan = parse_plan_file(content_of(context, artifacts["plan.json"]).decode())
    assert plan.source.sha256 == artifacts[TRAINED].sha256, "the plan is of the trained model"
    made = export(context, watch, job_id, 1)
    run_job(context, claim(), NEVER)
    assert artifacts_of(context, made)[TRAINED].sha256 == artifacts[TRAINED].sha256


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "elsewhere"])
def test_a_job_that_is_paused_while_its_head_is_trained_ends_as_if_undisturbed(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, asked: dict[str, Any], elsewhere: bool
) -> None:
    """On this machine it continues from its last checkpoint; elsewhere it begins anew, and says so."""
    asked["finetune"] = LESSONS | {"epochs": 3}
    whole = post(**asked)
    run_job(context, claim(), NEVER)
    job_id = post(**asked)

    def pause() -> None:
        with session_scope(context.sessions) as session:
            request_pause(session, job_id)

    with at_a_checkpoint(context, job_id, pause):
        run_job(context, claim(), NEVER)
    assert (watch.job(job_id).state, watch.trials(job_id)) == (JobState.PAUSED, []), (
        "it was in the training of the head"
    )
    (kept,) = left_behind(context, job_id)
    assert list(kept.glob(CHECKPOINTS))
    if elsewhere:
        shutil.rmtree(kept)
    with session_scope(context.sessions) as session:
        resume_job(session, job_id)
    run_job(context, claim(), NEVER)
    assert (watch.job(job_id).state, watch.job(job_id).error) == (JobState.SUCCEEDED, None)
    first, second = (artifacts_of(context, one) for one in (whole, job_id))
    for name in (TRAINED, "model/model.safetensors"):
        assert first[name].sha256 == second[name].sha256, name
    assert [note for note in watch.notes(job_id) if "begins anew" in note] == [BEGINS_ANEW] * elsewhere


@pytest.mark.slow
def test_a_base_model_posted_over_the_api_comes_back_trained_and_smaller(
    context: WorkerContext, claim: Claim, asked: dict[str, Any], team: Team, broker_url: str, tmp_path: Path
) -> None:
    with session_scope(context.sessions) as session:
        key = create_key(session, team.id, "test", Scope.ADMIN).text
    settings = context.settings.model_copy(update={"broker_url": SecretStr(broker_url)})
    body = {"name": "base", "preset": "paper", "config": asked.pop("knobs"), "forms": ["compact"], **asked}
    with TestClient(create_app(settings), headers={"Authorization": f"Bearer {key}"}) as client:
        posted = client.post("/v1/jobs", json=body)
        assert posted.status_code == 202, posted.text
        address = posted.headers["Location"]
        run_job(context, claim(), NEVER)
        job = client.get(address).json()
        assert (job["state"], job["head"]) == ("succeeded", HEAD)
        assert job["report"]["head"]["settings"]["epochs"] == LESSONS["epochs"]
        for name in ("config.json", "model.safetensors"):
            (tmp_path / name).write_bytes(client.get(f"{address}/artifacts/untouched/{name}").content)
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert model.config.label2id == {"no": 0, "yes": 1}
