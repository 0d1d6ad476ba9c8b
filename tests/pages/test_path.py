"""The page of a path: every model of a pass, and a button that makes a job of any."""

import re

import pytest

from axformer.wire.scopes import Scope
from store.repositories.jobs import list_jobs
from store.repositories.keys import create_key
from store.session import session_scope
from tests.api.test_exports import PROGRESS
from tests.api.test_paths import PATH, point


@pytest.fixture
def done(stage, make_trial):
    """A job that has succeeded with a path of three models."""
    trials = [make_trial(seq, **({"verdict": "accept"} if seq in (1, 3) else {})) for seq in range(4)]
    job_id = stage.running(trials, PROGRESS, name="reviews", config={"order": "auto"})
    stage.succeed(job_id, {"plan.json": b"{}"}, path=PATH)
    return job_id


def jobs_of(sessions, crew):
    with session_scope(sessions) as session:
        return list_jobs(session, crew.id, limit=9).items


def test_it_shows_every_model_and_which_was_kept(member, done):
    text = member.get(f"/jobs/{done}/path").text
    for shown in (
        "untouched",
        "layer.1.ffn",
        "layer.3.ffn",
        "Confirming loss",
        "-30.0 %",
        "-60.0 %",
        "1.03 ×",
        "Confirming accuracy",
        "0.7500",
    ):
        assert shown in text
    assert "Held-out loss" not in text
    assert text.count(">kept</span>") == 1
    assert "<title>3: layer.3.ffn, confirming accuracy +0.00 points (0.7500), 1.03 times as fast" in text
    assert 'width="300"' in member.get(f"/jobs/{done}/path/curve?width=300").text
    assert "--hub-token" in text  # its checkpoint is read from a hub
    assert f'href="/jobs/{done}/path"' in member.get(f"/jobs/{done}").text


def test_a_job_of_an_earlier_version_is_shown_without_what_it_has_not(member, stage, make_trial):
    job_id = stage.running([make_trial(0)], PROGRESS)
    new = ("estimated_latency_ms", "encoder_parameters", "encoder_operations")
    old = [{name: value for name, value in one.items() if name not in new} for one in PATH]
    stage.succeed(job_id, {"plan.json": b"{}"}, path=old)
    text = member.get(f"/jobs/{job_id}/path").text
    assert "layer.3.ffn" in text
    assert "<svg xmlns" in text
    assert "Of the encoder" not in text


COSTLY = [
    one | {"test": {"f1": 0.5, "loss": 0.5, "accuracy": accuracy}}
    for one, accuracy in zip(PATH, (0.8, 0.79, 0.77), strict=True)
]


@pytest.mark.parametrize(("query", "seq"), [("", 1), ("?within=0", 0), ("?within=1.5", 1), ("?within=3", 3)])
def test_the_fastest_model_within_the_points_is_chosen_without_a_script(member, stage, make_trial, query, seq):
    trials = [make_trial(seq, **({"verdict": "accept"} if seq in (1, 3) else {})) for seq in range(4)]
    job_id = stage.running(trials, PROGRESS)
    stage.succeed(job_id, {"plan.json": b"{}"}, path=COSTLY)
    text = member.get(f"/jobs/{job_id}/path{query}").text
    assert re.findall(r'id="point-(\d)" required checked', text) == [str(seq)]
    assert f"<strong>Trial {seq}: held-out accuracy" in text
    assert 'name="within" min="0" max="3"' in text


def test_models_that_another_beats_are_folded(member, stage, make_trial):
    job_id = stage.running([make_trial(0)], PROGRESS)
    models = (point(0), point(1, kept=True), point(2), point(3))
    worse = [
        one | {"test": {"loss": 0.5, "accuracy": accuracy}}
        for one, accuracy in zip(models, (0.8, 0.7, 0.6, 0.77), strict=True)
    ]
    stage.succeed(job_id, {"plan.json": b"{}"}, path=worse)
    text = member.get(f"/jobs/{job_id}/path?within=9").text
    assert "The other 1: another is as fast and as good" in text
    assert text.index('id="point-3"') < text.index("The other 1") < text.index('id="point-2"')


@pytest.mark.parametrize("within", ["-1", "nan", "inf", "x"])
def test_points_that_are_none_are_refused(member, done, within):
    assert member.get(f"/jobs/{done}/path?within={within}").status_code == 422


def test_a_model_becomes_a_job_that_leads_back(member, done, sessions, crew):
    path = f"/jobs/{done}/path"
    answer = member.post(path, member.token(path), seq="3", forms=["onnx", "zeroed"], nonce="a1")
    made = jobs_of(sessions, crew)[0]
    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{made.id}")
    assert (made.exported_from, made.upto, made.spec["forms"]) == (done, 3, ["compact", "zeroed", "onnx"])
    assert f'href="{path}"' in member.get(f"/jobs/{made.id}").text


def test_sent_twice_it_makes_one_job(member, done, sessions, crew):
    path = f"/jobs/{done}/path"
    token = member.token(path)
    first, again = (member.post(path, token, seq="1", nonce="a1") for _ in range(2))
    assert first.headers["location"] == again.headers["location"]
    assert len(jobs_of(sessions, crew)) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "status"), [({}, 422), ({"seq": "x"}, 422), ({"seq": "2"}, 404), ({"seq": "1", "forms": "pdf"}, 422)]
)
def test_what_cannot_be_exported_is_refused_with_the_reason(member, done, sessions, crew, fields, status):
    path = f"/jobs/{done}/path"
    answer = member.post(path, member.token(path), **fields)
    assert answer.status_code == status
    assert len(jobs_of(sessions, crew)) == 1


def test_who_may_only_read_sees_the_path_without_the_button(visitor, sessions, crew, done):
    with session_scope(sessions) as session:
        key = create_key(session, crew.id, "reader", Scope.READ).text
    assert visitor.sign_in(key).status_code == 303
    text = visitor.get(f"/jobs/{done}/path").text
    assert "layer.1.ffn" in text
    assert 'id="export"' not in text
    assert 'type="radio"' not in text


def test_a_job_that_runs_has_none_yet(member, stage):
    assert "There is no path" in member.get(f"/jobs/{stage.running()}/path").text


def test_other_teams_see_nothing(rival, done):
    assert rival.get(f"/jobs/{done}/path").status_code == 404
