"""A job on rows without labels: its result says how every model of its path answers them, and an export needs no more."""

import json
import tarfile
from pathlib import Path

from axformer.scores.labelling import standing_of
from axformer.wire.answer_sheet import AnswerSheet
from store.repositories.keys import create_key
from store.repositories.labels import put_labels
from store.session import session_scope
from store.states import JobState
from store.tables.jobs import Job
from tests.tiny_models import save_tiny_embedder, tiny_rows, write_rows
from tests.worker.conftest import Open, Post, Watch
from tests.worker.job.test_exports import export
from tests.worker.job.test_runner import NEVER, Claim, artifacts_of, content_of
from worker.base.context import WorkerContext
from worker.job.runner import run_job

KNOBS = {"method": "compress", "budgets": [0.8, 0.5], "confirm": 0.3, "within_points": 20.0}


def test_unlabelled_rows_alone_give_a_result_with_its_answers(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open, tmp_path: Path
) -> None:
    rows = [{"text": row["text"]} for row in tiny_rows(60, seed=7)]
    uri = f"file://{write_rows(opened.root / 'traffic.jsonl', rows)}"
    job_id = post(validation=None, unlabelled={"uri": uri}, knobs=KNOBS)
    run_job(context, claim(), NEVER)
    job, artifacts = watch.job(job_id), artifacts_of(context, job_id)
    assert (job.error, job.state) == (None, JobState.SUCCEEDED)
    assert set((job.progress or {})["inputs"]) == {"checkpoint", "unlabelled"}
    sheet = AnswerSheet.model_validate_json(content_of(context, artifacts["answers.json"]))
    assert [model.seq for model in sheet.models if model.form == "compact"] == [1, 2]
    assert sheet.unlabelled == sheet.rows
    assert "needed.jsonl" in artifacts
    report = json.loads(content_of(context, artifacts["report.json"]))
    assert report["data"]["unlabelled"]["rows"] == sheet.rows
    assert report["certificate"]["rows"] == sheet.rows  # which the worker has computed again

    made = export(context, watch, job_id, 2)
    run_job(context, claim(), NEVER)
    assert (watch.job(made).state, watch.job(made).error) == (JobState.SUCCEEDED, None)
    assert json.loads(content_of(context, artifacts_of(context, made)["report.json"]))["certificate"] is None

    labels = {row.id: next(place for place in (0, 1) if place != row.before) for row in sheet.changed}
    standing = standing_of(sheet, "compact", labels)
    assert standing.passed == 2, "labels that speak for the new models"
    form = {
        **{"form": "compact", "times": 2.0, "next": "", "best_p_value": None, "labelled": 0, "left": 0},
        **{"certified": [1, 2], "further": {}, "certificate": {"points": sheet.points}},
    }
    with session_scope(context.sessions) as session:
        source = session.get_one(Job, job_id)
        put_labels(session, job_id, create_key(session, source.team_id, "someone").row.id, labels)
        told = {"labels": len(labels), "disagreed": 0, "forms": [form], "exports": []}
        source.summary = {**(source.summary or {}), "labelled": told}
    made = export(context, watch, job_id, 2)
    run_job(context, claim(), NEVER)
    assert (watch.job(made).state, watch.job(made).error) == (JobState.SUCCEEDED, None)
    found = artifacts_of(context, made)
    report = json.loads(content_of(context, found["report.json"]))
    told = {name: report["certificate"][name] for name in ("kept", "points", "passed", "unlabelled")}
    left = sheet.unlabelled - len(sheet.changed)
    assert told == {"kept": 2, "points": 20.0, "passed": 2, "unlabelled": left}
    assert [point["seq"] for point in report["path"] if point["kept"]] == [2]
    assert all(form["p_value"] <= 0.05 for form in report["forms"] if form["made"])


def test_an_embedder_comes_as_an_archive_and_its_result_loads_in_sentence_transformers(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    made = save_tiny_embedder(tmp_path)
    with tarfile.open(opened.root / "embedder.tar", "w") as archive:
        archive.add(made, "all-tiny")
    rows = [{"text": f"{row['text']} word{index % 50}"} for index, row in enumerate(tiny_rows(60, seed=7))]
    uri = f"file://{write_rows(opened.root / 'traffic.jsonl', rows)}"
    job_id = post(
        checkpoint={"uri": f"file://{opened.root / 'embedder.tar'}"},
        validation=None,
        unlabelled={"uri": uri},
        knobs={"method": "compress", "budgets": [0.5], "confirm": 0.3},
    )
    run_job(context, claim(), NEVER)
    job, artifacts = watch.job(job_id), artifacts_of(context, job_id)
    assert (job.error, job.state) == (None, JobState.SUCCEEDED)
    assert json.loads(content_of(context, artifacts["report.json"]))["task"] == "embedding"
    for name in (name for name in artifacts if name.startswith("model/")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content_of(context, artifacts[name]))
    small, whole = (SentenceTransformer(str(path), device="cpu") for path in (tmp_path / "model", made))
    assert small.prompts == whole.prompts
    assert small.encode(["word1 word7"]).shape == whole.encode(["word1 word7"]).shape == (1, 48)


def test_unlabelled_rows_that_cannot_be_read_are_blamed(
    context: WorkerContext, post: Post, watch: Watch, claim: Claim, opened: Open
) -> None:
    uri = f"file://{write_rows(opened.root / 'bodies.jsonl', [{'body': 'word1'}, {'body': 'word2'}])}"
    job_id = post(validation=None, unlabelled={"uri": uri}, knobs=KNOBS)
    run_job(context, claim(), NEVER)
    error = watch.job(job_id).error or {}
    assert (watch.job(job_id).state, error["param"]) == (JobState.FAILED, "unlabelled")
