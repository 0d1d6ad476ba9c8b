"""Change and post again: the form filled in from a job, in any state, without anything secret."""

from html.parser import HTMLParser

import pytest

from axformer.config import make_config
from axformer.wire.scopes import Scope
from store.repositories.jobs import list_jobs
from store.repositories.keys import create_key
from store.session import session_scope
from store.tables.jobs import Job

TOKEN = "hf_canary" + "x" * 28
SAME = ("name", "spec", "labels", "device", "priority")
FULL = {
    "name": "reviews & more",
    "checkpoint": "hf://acme/bert",
    "validation": "s3://acme/dev.csv",
    "test": "s3://acme/test.csv",
    "train": "s3://acme/train.csv",
    "finetune.epochs": "2",
    "head": "classification=no,yes",
    "column.text": "sentence",
    "preset": "published",
    "knob.refine_margin": "1.3",
    "knob.attention_top_k": "null",
    "knob.max_length": "null",
    "knob.order": "explicit",
    "knob.explicit_order": "layer.0.ffn, layer.1.attention",
    "labels": "project:reviews by:me",
    "priority": "-7",
    "device": "cpu",
    "forms": ["compact", "onnx_int8"],
}


class Fields(HTMLParser):
    """What a browser would send of the form for a new job."""

    def __init__(self, text):
        super().__init__()
        self.sent, self.select, self.option = {}, None, None
        self.feed(text.partition('class="new-job"')[2].partition("</form>")[0])

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "input" and given.get("type") == "checkbox":
            if "checked" in given:
                self.sent.setdefault(given["name"], []).append(given["value"])
        elif tag == "input" and "name" in given:
            self.sent[given["name"]] = given.get("value") or ""
        elif tag == "select":
            self.select = given.get("name")  # one without a name is not sent
        elif tag == "option" and "selected" in given and self.select:
            self.sent[self.select] = None
        self.option = given if tag == "option" else None

    def handle_data(self, data):
        if self.option is not None and self.sent.get(self.select, "") is None:
            self.sent[self.select] = data


def jobs_of(sessions, crew):
    with session_scope(sessions) as session:
        return list(list_jobs(session, crew.id, limit=10).items)


def test_what_it_fills_in_makes_the_same_job_again(member, sessions, crew):
    first = member.post("/new", member.token("/new"), **FULL, nonce="abc1", hub_token=TOKEN).headers["location"]
    text = member.get(f"/new?like={first.rpartition('/')[2]}").text
    assert "canary" not in text
    assert "A token for the model hub, where one is needed, must be typed again." in text
    fields = Fields(text).sent
    assert fields["nonce"] != "abc1"
    token = fields.pop("form_token")
    answer = member.post("/new", token, **fields)
    assert answer.status_code == 303
    assert answer.headers["location"] != first
    again, before = jobs_of(sessions, crew)
    assert {name: getattr(again, name) for name in SAME} == {name: getattr(before, name) for name in SAME}


def test_only_knobs_that_were_changed_are_filled_in(member, sessions, crew):
    job = member.post("/new", member.token("/new"), **FULL, nonce="abc1").headers["location"].rpartition("/")[2]
    fields = Fields(member.get(f"/new?like={job}").text).sent
    filled = {name.removeprefix("knob.") for name, value in fields.items() if name.startswith("knob.") and value}
    assert filled == {"refine_margin", "attention_top_k", "max_length", "order", "explicit_order"}


@pytest.mark.parametrize("state", ["queued", "running", "succeeded", "failed"])
def test_every_page_of_a_job_leads_there(member, stage, state):
    made = {"succeeded": lambda: stage.succeeded({"plan.json": b"{}"})}
    job_id = made.get(state, getattr(stage, state))()
    for tab in ("", "/trace", "/path", "/settings"):
        assert f'href="/new?like={job_id}">Change and post again<' in member.get(f"/jobs/{job_id}{tab}").text


def test_what_no_page_may_repeat_is_left_out_and_said(member, stage):
    signed = {"uri": "https://acme.example/dev.csv?signature=canary", "sha256": "0" * 64}
    behind = {"uri": "https://me:canary@acme.example/bert.zip"}
    hook = {"url": "https://ci.acme.example/canary", "events": ["job.failed"]}
    knobs = make_config().model_dump(mode="json") | {"gone_since": 1}
    job_id = stage.queued(
        checkpoint=behind, validation=signed, webhook=hook, config=knobs, labels={"a": "b c", "d": "e"}
    )
    text = member.get(f"/new?like={job_id}").text
    assert "canary" not in text
    assert text.count("which no page repeats") == 2
    assert "Labels with spaces" in text
    assert "Its webhook is not filled in." in text
    fields = Fields(text).sent
    assert (fields["checkpoint"], fields["validation"], fields["knob.tolerance"], fields["labels"]) == (
        "",
        "",
        "",
        "d:e",
    )


def test_a_job_of_another_team_and_a_key_that_only_reads_fill_in_nothing(rival, visitor, stage, sessions, crew):
    job_id = stage.queued()
    assert rival.get(f"/new?like={job_id}").status_code == 404
    with session_scope(sessions) as session:
        key = create_key(session, crew.id, "reader", Scope.READ).text
    visitor.sign_in(key)
    assert visitor.get(f"/new?like={job_id}").status_code == 403
    assert "post-again" not in visitor.get(f"/jobs/{job_id}").text


def test_uploads_are_the_same(member, stage, sessions):
    uri = "upload:upl_" + "0" * 32
    job_id = stage.queued(validation={"uri": uri, "columns": {"text": "text", "label": "stars"}})
    with session_scope(sessions) as session:
        assert session.get_one(Job, job_id).sources["validation"]["uri"] == uri
    fields = Fields(member.get(f"/new?like={job_id}").text).sent
    assert (fields["validation"], fields["column.text"], fields["column.label"]) == (uri, "", "stars")
