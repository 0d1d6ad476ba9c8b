"""The page for labels without scripts: what is asked and how, skipping, undoing, several people; and what a job's page says."""

import html
import re
from urllib.parse import unquote_plus

import pytest
from starlette.testclient import TestClient

from api.pages.job_parts import standings_of
from api.services.labelling import Labelling
from axformer.wire.scopes import Scope
from store.repositories.keys import create_key
from store.repositories.labels import labels_of
from store.session import session_scope
from store.tables.jobs import Job
from tests.api.test_labels import finish, post
from tests.pages.conftest import ORIGIN, Visitor
from tests.sheets import CHANGED, sheet_of_path, small_sheet, truth_of

__all__ = ["finish"]


@pytest.fixture
def other(app, sessions, crew):
    """A second person of the crew, signed in with another key."""
    with TestClient(app, raise_server_exceptions=False) as client:
        with session_scope(sessions) as session:
            key = create_key(session, crew.id, "colleague", Scope.WRITE).text
        visitor = Visitor(client)
        visitor.sign_in(key)
        yield visitor


def asked(page):
    """The rows that a page asks for, the one that is shown first."""
    return re.findall(r'class="ask" data-row="([^"]+)"', page)


def label(visitor, job_id, row, do="label", **fields):
    page = f"/jobs/{job_id}/label"
    return visitor.post(page, visitor.token(page), row=row, do=do, **fields)


def given(sessions, job_id):
    with session_scope(sessions) as session:
        return {(one.row_id, one.by): one.label for one in labels_of(session, job_id)}


def test_one_text_is_shown_with_a_button_for_each_class_and_no_answer(member, finish):
    job_id = finish(sheet_of_path())
    page = member.get(f"/jobs/{job_id}/label").text
    first = re.search(r'<form method="post"[^>]*class="ask".*?</form>', page, re.DOTALL)[0]
    assert re.search(r"<p>text \d+</p>", first)
    names = re.findall(r'<button name="label" value="(\d)" data-key="(\w)"[^>]*>.*?<span>(\w+)</span></button>', first)
    assert names == [("0", "1", "negative"), ("1", "2", "positive")]
    assert "before" not in first
    assert page.count('class="ask"') == page.count(' hidden aria-label="Text to label"') + 1
    assert "At most 16 more labels decide about the model with 1.60 times fewer operations." in page


def test_a_label_is_stored_and_the_next_text_comes(member, finish, sessions):
    job_id = finish(sheet_of_path())
    first, second, *_ = asked(member.get(f"/jobs/{job_id}/label").text)
    answer = label(member, job_id, first, label="1")
    assert answer.status_code == 303
    page = member.get(answer.headers["location"]).text
    assert asked(page)[0] == second
    assert given(sessions, job_id) == {(first, "test"): 1}
    undo = re.search(r'id="undo">.*?name="row" value="(\w+)"', page, re.DOTALL)
    assert undo[1] == first
    answer = label(member, job_id, first, do="undo")
    assert asked(member.get(answer.headers["location"]).text)[0] == first
    assert given(sessions, job_id) == {}


def test_a_skipped_text_comes_last_if_at_all(member, finish, sessions):
    job_id, skipped = finish(small_sheet("pairs")), ""
    seen = []
    while rows := asked(member.get(f"/jobs/{job_id}/label?skip={skipped}").text):
        seen.append(rows[0])
        answer = label(member, job_id, rows[0], do="skip", skip=skipped)
        skipped = unquote_plus(re.search(r"skip=([^&]*)", answer.headers["location"])[1])
    assert sorted(seen) == ["00000001", "00000002", "00000003"]
    assert "Only texts are left that you skipped" in member.get(f"/jobs/{job_id}/label?skip={skipped}").text
    answer = label(member, job_id, seen[-1], do="undo", skip=skipped)
    assert asked(member.get(answer.headers["location"]).text) == [seen[-1]]
    assert given(sessions, job_id) == {}


@pytest.mark.parametrize(
    ("task", "sent", "stored", "shown"),
    [
        ("pairs", {"label": "0"}, 0, ["<h2>premise</h2>", "a guitar &lt;on&gt; a stage", "<span>contradiction</span>"]),
        ("multiple_choice", {"label": "2"}, 2, ["<p>She put the kettle", "<span>the kettle was red.</span>"]),
        ("reranking", {"label": "1"}, 1, ["<p>who built the bridge", "<span>Eiffel built it.</span>"]),
        (
            "token_classification",
            {"word.1": "2", "word.3": "3"},
            [1, 2, 0, 3, 0, 0],
            ["Angela <mark>Merkel</mark> visited"],
        ),
        (
            "question_answering",
            {"label": "0"},
            "1912",
            ["When was the bridge", "<span>in 1913</span>", "<span>none of these</span>", "&lt;b&gt;"],
        ),
        ("question_answering", {"label": "2"}, "none of these", []),
        ("multi_label_classification", {"label": ["0", "2"]}, [1, 0, 1], ["All that apply", "<span>price</span>"]),
        ("multi_label_classification", {}, [0, 0, 0], []),
        ("regression", {"label": "2.75"}, 2.75, ["<h2>sentence1</h2>", "A number, as from 3.25 to 3.25"]),
        ("many", {"label": "43"}, 43, ["Find a class", "<span>exchange 11</span>"]),
    ],
)
def test_every_kind_of_answer_can_be_given(member, finish, sessions, task, sent, stored, shown):
    job_id = finish(small_sheet(task))
    page = member.get(f"/jobs/{job_id}/label").text
    for text in shown:
        assert text in page
    row = asked(page)[0]
    assert label(member, job_id, row, **sent).status_code == 303
    assert given(sessions, job_id) == {(row, "test"): stored}


def test_of_tags_only_words_are_asked_that_changed(member, finish):
    page = member.get(f"/jobs/{finish(small_sheet('token_classification'))}/label").text
    assert set(re.findall(r'name="(word\.\d)"', page)) == {"word.1", "word.3"}
    assert "checked" not in page, "nobody says what a model said"


@pytest.mark.parametrize(
    ("task", "sent"),
    [
        ("pairs", {}),
        ("question_answering", {"label": "-1"}),
        ("pairs", {"label": "x"}),
        ("regression", {"label": "much"}),
        ("token_classification", {"word.1": "2"}),
    ],
)
def test_nothing_chosen_stores_nothing(member, finish, sessions, task, sent):
    job_id = finish(small_sheet(task))
    assert label(member, job_id, "00000001", **sent).status_code == 422
    assert label(member, job_id, "of another result", label="0").status_code == 404
    assert label(member, job_id, "00000001", label="1e39" if task == "regression" else "9").status_code == 422
    assert given(sessions, job_id) == {}


def test_two_people_begin_at_different_texts_and_are_never_asked_for_what_the_other_has_said(member, other, finish):
    job_id, seen = finish(sheet_of_path()), []
    for turn in range(8):
        person = (member, other)[turn % 2]
        row = asked(person.get(f"/jobs/{job_id}/label").text)[0]
        seen.append(row)
        label(person, job_id, row, label="0")
    assert len(set(seen)) == len(seen)


def test_people_who_disagree_are_shown_and_may_answer_again(member, other, finish, sessions):
    job_id = finish(small_sheet("pairs"))
    label(member, job_id, "00000002", label="0")
    label(other, job_id, "00000002", label="1")
    page = member.get(f"/jobs/{job_id}/label").text
    assert "People disagree on 1 text, which counts as unlabelled" in page
    assert "test: entailment, colleague: neutral" in html.unescape(page)
    assert "00000002" not in asked(page)
    again = re.search(r'href="(/jobs/[^"]+/label\?row=00000002)">Answer again', page)[1]
    assert asked(member.get(again).text)[0] == "00000002"
    label(member, job_id, "00000002", label="1")
    assert "disagree" not in member.get(f"/jobs/{job_id}/label").text
    assert set(given(sessions, job_id).values()) == {1}


def test_a_script_gets_what_is_next_and_only_the_cards_that_it_lacks(member, finish):
    job_id = finish(sheet_of_path())
    page = f"/jobs/{job_id}/label"
    rows, token = asked(member.get(page).text), member.token(page)
    fields = {"form_token": token, "row": rows[0], "label": "1", "have": " ".join(rows[1:])}
    answer = member.client.post(page, data=fields, headers={"Accept": "application/json", "Origin": ORIGIN})
    told = answer.json()
    assert set(told) == {"progress", "rows", "cards"}
    assert told["rows"][: len(rows) - 1] == rows[1:]
    assert asked(told["cards"]) == told["rows"][len(rows) - 1 :]
    assert "At most 15 more labels" in told["progress"]


def test_a_key_that_only_reads_cannot_label_and_no_other_team_can(visitor, rival, finish, sessions, crew):
    job_id = finish(sheet_of_path())
    assert rival.get(f"/jobs/{job_id}/label").status_code == 404
    with session_scope(sessions) as session:
        key = create_key(session, crew.id, "reader", Scope.READ).text
    visitor.sign_in(key)
    assert visitor.get(f"/jobs/{job_id}/label").status_code == 403
    assert "to-label" not in visitor.get(f"/jobs/{job_id}").text


def test_a_job_without_answers_has_no_such_page_and_no_link(member, stage, make_trial):
    job_id = stage.succeeded({"plan.json": b"{}"}, [make_trial(0)])
    assert member.get(f"/jobs/{job_id}/label").status_code == 409
    assert "to-label" not in member.get(f"/jobs/{job_id}").text


def test_the_pages_of_a_job_say_what_labels_have_certified(member, finish, crew, stage):
    sheet = sheet_of_path(("compact", "onnx_int8"))
    job_id, truth = finish(sheet), truth_of(sheet)
    before = member.get(f"/jobs/{job_id}").text
    assert f'href="/jobs/{job_id}/label">Label texts<small>at most 16 for the next certificate' in before
    some = {row.id: truth[row.id] for row in sheet.changed[: CHANGED[1]]}
    read = post(member.client, job_id, some, headers=crew.headers).json()
    page = member.get(f"/jobs/{job_id}").text
    assert page.count("<strong>Certified by 16 labels: less than 2 points of accuracy lost") == 1, (
        "both forms are alike"
    )
    assert f'<a href="/jobs/{read["exports"][0]["job"]}">a job of its own</a>' in page
    assert "1.60 times fewer operations certified by 16 labels" in member.get("/").text
    exported = read["exports"][0]["job"]
    stage.begin(exported)
    stage.succeed(exported, {"model/config.json": b"{}"})
    page = member.get(f"/jobs/{exported}").text
    assert '<p id="certified"><strong>Certified by 16 labels: less than 2 points of accuracy lost' in page
    assert f'<a href="/jobs/{job_id}">the job that it was exported from</a>' in page
    assert "to-label" not in page
    second = stage.queued()
    compared = member.get(f"/compare?job={job_id}&job={second}").text
    assert "times fewer operations, certified by labels" in compared
    assert "1.60 ×" in compared


def test_forms_that_are_certified_alike_are_told_once_and_others_by_their_names():
    sheet = sheet_of_path(("compact", "onnx", "onnx_int8"))
    assert [names for names, _ in standings_of(read_of(sheet))] == [""]
    less = [model for model in sheet.models if model.form != "onnx" or model.seq < 6]
    told = [names for names, _ in standings_of(read_of(sheet.model_copy(update={"models": less})))]
    assert told == ["ONNX int8 and PyTorch", "ONNX"]


def read_of(sheet):
    return Labelling(Job(), sheet, []).read
