"""Analyses on pages: the form, the page of the job while it runs and when it has ended, and the report behind a wall."""

import pytest

from axformer.wire.analysis import ANALYSIS_FORMAT
from axformer.wire.states import JobKind
from store.repositories.jobs import list_jobs
from store.session import session_scope
from store.tables.jobs import Job
from tests.pages.test_posted_again import Fields

ADVICE = {"sentence": "Layers <repeat>.", "command": "axformer prune bert --data dev.csv --output out"}
ANALYSIS = {"format": ANALYSIS_FORMAT, "reports": {"layers": None, "heads": {"advice": ADVICE}, "cka": None}}
ANALYSIS["reports"] |= {"clusters": None, "drift": None, "features": None}
STEP = {"name": "importance", "done": 3, "known": 8, "seconds_left": 20.0}
PROGRESS = {"done": 0, "known": 0, "seconds": 0.0, "first_look": "40 rows, classification", "step": STEP}
PROGRESS |= {"dimensions": {"layers": 2, "heads": 2, "hidden_size": 8, "intermediate_size": 12}}
PAGE = b"<!doctype html><p>analysis</p>"
FORM = {"name": "where", "checkpoint": "hf://acme/bert", "validation": "s3://acme/dev.csv", "nonce": "once"}


@pytest.fixture
def running(stage):
    asked = {"reports": ["heads", "cka"], "rows": 300}
    more = {"against": {"uri": "hf://acme/base"}, "train": {"uri": "s3://acme/train.csv"}, "forms": []}
    return stage.running((), PROGRESS, name="where", kind=JobKind.ANALYSIS, analysis=asked, **more)


@pytest.fixture
def done(stage, running):
    stage.succeed(running, {"analysis.html": PAGE, "analysis.json": b"{}", "artifact.tar.gz": b"all"}, **ANALYSIS)
    return running


def jobs_of(sessions, crew) -> list[Job]:
    with session_scope(sessions) as session:
        return list(list_jobs(session, crew.id, limit=9).items)


def test_while_it_runs_its_page_shows_its_steps_and_nothing_of_a_pass(member, running):
    text = member.get(f"/jobs/{running}").text
    assert "Now measuring the importance of heads: 3 of 8, about 20 s left." in text
    assert "40 rows, classification." in text
    for shown in ("Trials", "Validation loss", 'id="chart"', 'id="map"', ">Trace<", ">Path<"):
        assert shown not in text
    board = member.get("/").text
    assert '3 <span class="of">of 8' in board
    assert ">loss<" not in board


def test_done_it_shows_what_each_report_found_and_opens_the_analysis(member, done):
    text = member.get(f"/jobs/{done}").text
    assert "Layers &lt;repeat&gt;." in text
    assert ADVICE["command"] in text
    for button in ("open-analysis", "take-all"):
        assert f'id="{button}"' in text
    assert "analysis.json" in text
    opened = member.get(f"/jobs/{done}/analysis")
    assert opened.content == PAGE
    assert opened.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    assert member.get(f"/jobs/{done}/report").status_code == 404


def test_the_list_says_how_many_reports_it_has(member, done):
    assert '1 report<span class="why">analysis' in member.get("/").text


def test_every_other_page_of_it_opens(member, stage, done):
    for page in ("/settings", "/trace", "/path", "/chart", "/map"):
        assert member.get(f"/jobs/{done}{page}").status_code == 200
    settings = member.get(f"/jobs/{done}/settings").text
    assert "heads, cka" in settings
    assert "hf://acme/base" in settings
    assert "Knobs" not in settings
    compared = member.get(f"/compare?job={done}&job={stage.queued()}")
    assert (compared.status_code, "where" in compared.text) == (200, True)


def test_the_form_posts_an_analysis_once(member, sessions, crew):
    token = member.token("/analyses/new")
    sent = [
        member.post("/analyses/new", token, **FORM, reports=["cka", "heads"], rows="50", **{"column.text": "review"})
        for _ in range(2)
    ]
    assert [answer.status_code for answer in sent] == [303, 303]
    assert sent[0].headers["Location"] == sent[1].headers["Location"]
    (job,) = jobs_of(sessions, crew)
    assert (job.kind, job.run["reports"], job.run["rows"]) == (JobKind.ANALYSIS, ["cka", "heads"], 50)
    assert job.sources["validation"]["columns"]["text"] == "review"
    assert "against" not in job.sources


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reports": ["drift"]}, "compares two models; give against too"),
        ({"rows": "many"}, "rows: "),
        ({"validation": "ftp://acme"}, "ftp://acme"),
    ],
)
def test_what_is_wrong_is_said_and_what_was_typed_stays(member, sessions, crew, change, words):
    answer = member.post("/analyses/new", member.token("/analyses/new"), **FORM | change)
    assert answer.status_code == 422
    assert words in answer.text
    assert 'value="hf://acme/bert"' in answer.text
    assert jobs_of(sessions, crew) == []


def test_a_jobs_page_leads_to_an_analysis_of_its_model_and_back(member, stage, done):
    job_id = stage.queued(name="reviews", train={"uri": "s3://acme/train.csv"})
    assert f'href="/analyses/new?like={job_id}"' in member.get(f"/jobs/{job_id}").text
    fields = Fields(member.get(f"/analyses/new?like={job_id}").text).sent
    assert (fields["name"], fields["checkpoint"]) == ("analysis of reviews", "hf://acme/bert")
    assert (fields["validation"], fields["train"]) == ("s3://acme/dev.csv", "s3://acme/train.csv")
    text = member.get(f"/jobs/{done}").text
    assert f'href="/analyses/new?like={done}">Change and post again<' in text
    assert f'href="/new?like={done}">Prune this model<' in text
    again = Fields(member.get(f"/analyses/new?like={done}").text).sent
    assert (again["against"], again["rows"], again["name"]) == ("hf://acme/base", "300", "where")
    assert Fields(member.get(f"/new?like={done}").text).sent["checkpoint"] == "hf://acme/bert"
