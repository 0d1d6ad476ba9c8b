"""The board: what it shows, to whom, and how it moves."""

import json

import pytest
from sqlalchemy import update

from axformer.wire.devices import Device
from store.repositories.keys import revoke_key
from store.repositories.steering import request_cancel
from store.repositories.workers import note_worker
from store.session import session_scope
from store.tables.jobs import Job
from tests.api.conftest import Stage
from tests.pages.test_result import FORMS
from tests.statements import reads_report, said_to

HOSTILE = "<script>alert(1)</script>\"'&"


def test_it_shows_running_waiting_and_ended_jobs(member, stage, make_trial):
    stage.succeeded({"plan.json": b"{}"}, [make_trial(0)])
    progress = {"done": 3, "known": 12, "seconds": 3.0, "seconds_left": 9.0, "base_loss": 0.5, "min_loss": 0.4}
    stage.running([make_trial(0)], progress, name="at work")
    stage.queued(name="in line", labels={"project": "reviews"})
    text = member.get("/").text
    assert '<progress class="bar-of" value="3" max="12"' in text
    for shown in ("at work", "in line", "0.5000 → 0.4000", "9 s", "project:reviews", "succeeded"):
        assert shown in text


def test_an_ended_job_shows_its_metric_and_how_fast_its_best_form_is(member, stage, make_trial):
    job_id = stage.running([make_trial(0)])
    stage.succeed(job_id, {"plan.json": b"{}"}, **FORMS)
    earlier = stage.running([make_trial(0)])
    stage.succeed(earlier, {"plan.json": b"{}"}, estimated_speedup=1.25)
    text = member.get("/").text
    for shown in ("85.00 → 84.40", "held-out accuracy", "5.0 ×", "ONNX int8", "1.25 ×", "estimated"):
        assert shown in text


def test_a_missed_target_is_said_and_can_be_filtered(member, stage, make_trial):
    for name, reached in (("fast enough", True), ("too slow", False)):
        job_id = stage.running([make_trial(0)], name=name)
        stage.succeed(job_id, {"plan.json": b"{}"}, target={"reached": reached, "sentence": "So it was."})
    text = member.get("/").text
    assert text.count('class="state s-missed"') == 1
    assert 'class="state s-missed"' in member.get(f"/jobs/{job_id}").text
    found = member.get("/?state=target_missed").text
    assert "too slow" in found
    assert "fast enough" not in found


def test_a_team_with_nothing_is_told_what_to_do(member):
    text = member.get("/").text
    for shown in ("Nothing runs, and nothing waits.", "No worker is alive", "Post the first one"):
        assert shown in text
    assert "try the demo model" not in text


def test_the_demo_is_offered_where_it_lies_and_fills_in_the_form(member, settings, file_root):
    object.__setattr__(settings, "var_dir", file_root)
    demo = file_root / "demo"
    (demo / "checkpoint").mkdir(parents=True)
    for name in ("validation", "test"):
        (demo / f"{name}.jsonl").write_text("{}")
    assert '<a href="/new?demo=1">try the demo model</a>' in member.get("/").text
    form = member.get("/new?demo=1").text
    for shown in (
        f'value="file://{demo}/checkpoint"',
        f'value="file://{demo}/test.jsonl"',
        'value="demo: movie reviews"',
    ):
        assert shown in form


def test_of_other_teams_it_shows_numbers_only(member, stage, sessions, rivals):
    theirs = Stage(sessions, stage.storage, rivals.id)
    theirs.queued(name="secret plan")
    stage.queued(name="own")
    text = member.get("/").text
    assert "1 of others" in text
    assert "another team <b>1</b>" in text
    assert "secret plan" not in text
    assert "rivals" not in text


def test_each_worker_is_shown_with_its_card_and_what_it_runs(member, stage, sessions, rivals):
    with session_scope(sessions) as session:
        for name, memory in (("worker-1", 80 * 10**9), ("idle", None)):
            note_worker(session, name, name, "axformer", Device.GPU, memory=memory)
    job_id = stage.running(name="own")
    workers = member.get("/").text.partition('id="workers-title"')[2]
    for shown in ("worker-1", "80 GB", f'<a class="name" href="/jobs/{job_id}" id="on-{job_id}">own</a>', "nothing"):
        assert shown in workers
    with session_scope(sessions) as session:
        session.execute(update(Job).values(team_id=rivals.id))
    stage.queued()
    workers = member.get("/").text.partition('id="workers-title"')[2].partition("</section>")[0]
    assert "a job of another team" in workers
    assert "own" not in workers


def test_what_people_have_written_stays_text(member, stage):
    stage.queued(name=HOSTILE, labels={"a": HOSTILE})
    text = member.get("/?text=" + "%3Cscript%3E").text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("state=cancelled", {"gone"}),
        ("text=EVEN", {"even one"}),
        ("text=%25", set()),
        ("label=team:b", {"odd"}),
        ("state=nonsense", {"even one", "odd", "gone"}),
        ("text=nothing", set()),
        ("text=a%00b", set()),
    ],
)
def test_the_list_is_filtered(member, stage, sessions, query, found):
    stage.queued(name="even one")
    stage.queued(name="odd", labels={"team": "b"})
    gone = stage.queued(name="gone")
    with session_scope(sessions) as session:
        request_cancel(session, gone)
    jobs = member.get(f"/?{query}").text.partition('id="history"')[2]
    assert {name for name in ("even one", "odd", "gone") if f">{name}</a>" in jobs} == found


def test_a_job_is_found_by_the_beginning_of_its_id(member, stage):
    job_id = stage.queued(name="by id")
    assert ">by id</a>" in member.get(f"/?text={job_id[:20]}").text.partition('id="history"')[2]


@pytest.mark.parametrize("query", ["label=nonsense", "after=nonsense"])
def test_a_filter_that_cannot_be_read_says_so(member, query):
    answer = member.get(f"/?{query}")
    assert answer.status_code == 200
    assert 'role="alert"' in answer.text


def test_older_jobs_are_on_the_next_page(member, stage, settings):
    for number in range(settings.page_limit_default + 1):
        stage.queued(name=f"number {number}")
    first = member.get("/").text
    older = first.partition('<a href="/?after=')[2].partition("#")[0]
    second = member.get(f"/?after={older}").text.partition('id="history"')[2]
    assert ">number 0</a>" in second
    assert ">number 5</a>" not in second


def test_it_moves_while_it_is_open(member, stage):
    stage.queued(name="first")
    with member.client.stream("GET", "/board/live") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("data:"):
                parts = json.loads(line.removeprefix("data:"))
                break
        member.client.app.state.resources.stop()
    assert set(parts) == {"now", "history"}
    assert "first" in parts["history"]


def test_no_look_reads_a_whole_report(member, stage):
    stage.succeeded({})
    resources = member.client.app.state.resources
    with said_to(resources.engine) as said:
        assert member.get("/").status_code == 200
        with member.client.stream("GET", "/board/live") as answer:
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    break
            resources.stop()
    assert any("FROM jobs" in statement for statement in said)
    assert [statement for statement in said if reads_report(statement)] == []


def test_it_ends_when_the_key_is_revoked(member, crew, sessions):
    lines = []
    with member.client.stream("GET", "/board/live") as answer:
        for line in answer.iter_lines():
            lines.append(line)
            if line.startswith("data:") and len(lines) < 10:
                with session_scope(sessions) as session:
                    revoke_key(session, crew.key.split("_")[1])
    assert "event: gone" in lines
