"""The form for a new job: what it posts, what it refuses, and what it guesses of a file."""

import gzip
import html
import io
import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.pages.columns import preview
from api.pages.formats import prose
from api.services.inputs.contents import ReferencedFile
from api.services.inputs.data import LOOK_BYTES
from api.services.webhooks import create_secret
from axformer.config import ABOUT_PRESETS, DEFAULT_PRESET, PassConfig
from axformer.config.goals import ABOUT_GOALS
from axformer.wire.run import DATA
from axformer.wire.scopes import Scope
from store.repositories.audit import Operator
from store.repositories.jobs import hub_token_of, list_jobs
from store.repositories.keys import create_key
from store.session import session_scope
from store.signing import open_vault

TOKEN = "hf_canary" + "x" * 28
FIELDS = {"name": "from the page", "checkpoint": "hf://acme/bert", "validation": "s3://acme/dev.csv", "nonce": "abc1"}


def jobs_of(sessions, crew):
    with session_scope(sessions) as session:
        return list(list_jobs(session, crew.id, limit=10).items)


def named(name, content):
    return ReferencedFile(name, len(content), io.BytesIO(content))


def send(member, **fields):
    return member.post("/new", member.token("/new"), **FIELDS | fields)


def test_the_form_knows_every_knob_from_the_library(member):
    text = member.get("/new").text
    for name, about in PassConfig.model_fields.items():
        assert f'name="knob.{name}"' in text
        assert str(prose(str(about.description))) in text


def test_the_form_says_what_each_preset_is_and_takes_the_default(member):
    text = html.unescape(member.get("/new").text)
    for name, about in ABOUT_PRESETS.items():
        assert f"<code>{name}</code>, {about}" in text
    assert f"<option selected>{DEFAULT_PRESET}</option>" in text


def test_int8_is_ticked_beside_the_compact_form_and_both_are_made(member, sessions, crew):
    assert re.findall(r'name="forms" value="(\w+)" checked', member.get("/new").text) == ["compact", "onnx_int8"]
    send(member)
    (job,) = jobs_of(sessions, crew)
    assert job.spec["forms"] == ["compact", "onnx_int8"]


def test_code_in_a_reason_is_code_and_all_else_is_text():
    assert prose("``a<b`` & so, ``c``") == "<code>a&lt;b</code> &amp; so, <code>c</code>"


def test_it_posts_a_job_with_all_that_was_filled_in(member, sessions, crew):
    knobs = {
        "knob.refine_margin": "1.3",
        "knob.attention_top_k": "null",
        "knob.tolerance": "",
        "knob.max_length": "64",
    }
    columns = {"column.text": "sentence", "column.label": "class"}
    rest = {"labels": "project:reviews by:me", "priority": "7", "forms": ["compact", "onnx"], "preset": "published"}
    answer = send(member, **knobs, **columns, **rest)
    (job,) = jobs_of(sessions, crew)
    assert answer.headers["location"] == f"/jobs/{job.id}"
    assert job.sources["validation"]["uri"] == "s3://acme/dev.csv"
    assert (job.sources["validation"]["columns"]["text"], job.sources["validation"]["columns"]["label"]) == (
        "sentence",
        "class",
    )
    assert (job.config["refine_margin"], job.config["attention_top_k"], job.config["max_length"]) == (1.3, None, 64)
    assert (job.config["ties_help"], job.config["tolerance"]) == (True, None)
    assert (job.labels, job.priority, job.spec["forms"]) == ({"project": "reviews", "by": "me"}, 7, ["compact", "onnx"])


def test_training_a_webhook_and_a_hub_token_go_with_the_job(member, sessions, crew, settings):
    with session_scope(sessions) as session:
        create_secret(session, settings, Operator(crew.id))
    training = {"train": "s3://acme/train.csv", "finetune.epochs": "2", "finetune.learning_rate": "1e-5"}
    webhook = {"webhook.url": "https://ci.acme.example/axformer", "webhook.events": ["job.failed", "job.succeeded"]}
    assert send(member, **training, **webhook, hub_token=TOKEN).status_code == 303
    (job,) = jobs_of(sessions, crew)
    assert job.sources["train"]["uri"] == "s3://acme/train.csv"
    assert (
        job.spec["finetune"]["epochs"],
        job.spec["finetune"]["learning_rate"],
        job.spec["finetune"]["batch_size"],
    ) == (2, 1e-5, 32)
    assert job.webhook == {"url": webhook["webhook.url"], "events": webhook["webhook.events"]}
    with session_scope(sessions) as session:
        assert open_vault(settings).unlock(hub_token_of(session, job.id)) == TOKEN


def test_a_new_head_goes_with_the_job_and_is_shown(member, sessions, crew):
    answer = send(member, train="s3://acme/train.csv", head="classification=no, yes")
    (job,) = jobs_of(sessions, crew)
    assert job.run["head"] == {"task": "classification", "labels": ["no", "yes"]}
    assert "classification: no, yes" in member.get(f"{answer.headers['location']}/settings").text


def test_data_that_calibrates_goes_with_the_job_and_is_shown(member, sessions, crew):
    answer = send(member, preset="smallest", calibrate="s3://acme/texts.csv", **{"column.text": "sentence"})
    (job,) = jobs_of(sessions, crew)
    assert (job.sources["calibrate"]["uri"], job.sources["calibrate"]["columns"]["text"]) == (
        "s3://acme/texts.csv",
        "sentence",
    )
    assert "s3://acme/texts.csv" in member.get(f"{answer.headers['location']}/settings").text


def test_unlabelled_rows_go_with_the_job_without_validation_data_and_are_filled_in_again(member, sessions, crew):
    fields = {"validation": "", "unlabelled": "s3://acme/traffic.csv", "column.text": "sentence"}
    answer = send(member, goal="same-answers", **{"goal.same-answers": "97"}, **fields)
    (job,) = jobs_of(sessions, crew)
    assert set(job.sources) == {"checkpoint", "unlabelled"}
    assert job.run["goal"] == "same-answers=97"
    at = answer.headers["location"]
    assert member.get(at).status_code == 200
    assert "s3://acme/traffic.csv" in member.get(f"{at}/settings").text
    again = member.get(f"/new?like={job.id}").text
    assert 'id="unlabelled" name="unlabelled" value="s3://acme/traffic.csv"' in again
    assert 'name="column.text" value="sentence"' in again
    assert member.get(f"/analyses/new?like={job.id}").status_code == 200


def test_each_data_set_has_one_field(member):
    text = member.get("/new").text
    assert [text.count(f'<input type="text" id="{part}"') for part in DATA] == [1] * len(DATA)


@pytest.mark.parametrize("more", [{"do": "check"}, {"knob.refine_margin": "0.5"}])
def test_a_hub_token_is_on_no_page_and_must_be_typed_again(member, more):
    text = send(member, hub_token=TOKEN, **more).text
    assert "canary" not in text
    assert "Type the token again" in text
    (field,) = re.findall('<input[^>]* name="hub_token"[^>]*>', text)
    assert " required" in field


def test_sent_twice_it_makes_one_job(member, sessions, crew):
    token = member.token("/new")
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda _: member.post("/new", token, **FIELDS), range(2)))
    assert len({answer.headers["location"] for answer in answers}) == 1
    assert len(jobs_of(sessions, crew)) == 1


def test_a_check_sends_nothing(member, sessions, crew):
    answer = send(member, do="check")
    assert "The service would accept this job" in answer.text
    assert 'value="s3://acme/dev.csv"' in answer.text
    assert jobs_of(sessions, crew) == []


@pytest.mark.parametrize(
    ("fields", "marked", "said"),
    [
        ({"name": ""}, "name", "at least 1 character"),
        ({"checkpoint": "ftp://x"}, "checkpoint", "lies where this service does not read"),
        ({"validation": "upload:upl_" + "0" * 32}, "validation", "is not an upload of your team"),
        ({"knob.refine_margin": "0.5"}, "", "refine_margin=0.5"),
        ({"knob.order": "explicit"}, "", "give both or neither"),
        ({"priority": "many"}, "priority", "valid integer"),
        ({"preset": "other"}, "preset", "paper"),
        ({"finetune.epochs": "0", "train": "s3://acme/train.csv"}, "finetune.epochs", "greater than or equal to 1"),
        ({"finetune.epochs": "2"}, "finetune.epochs", "give train too"),
        ({"head": "regression"}, "head", "give train too"),
        ({"head": "guessing"}, "head", "is not a task"),
        ({"pooling": "all"}, "pooling", "pooling: Input should be"),
        ({"calibrate": "s3://acme/texts.csv", "preset": "paper"}, "calibrate", "method=axformer fits none"),
        (
            {"webhook.url": "https://10.0.0.1/", "webhook.events": "job.failed"},
            "webhook.url",
            "not at a public address",
        ),
        ({"webhook.url": "https://ci.acme.example/"}, "webhook.events", "at least 1 item"),
        ({"webhook.url": "https://ci.acme.example/", "webhook.events": "job.failed"}, "webhook.url", "has no secret"),
        ({"hub_token": "two words"}, "hub_token", "token: is not a token"),
        ({"labels": "!:x"}, "labels", "pattern"),
        ({"do": "check", "checkpoint": "file:///etc/passwd"}, "checkpoint", "file"),
    ],
)
def test_what_cannot_be_used_is_said_at_its_field(member, sessions, crew, fields, marked, said):
    answer = send(member, **fields)
    assert answer.status_code == 422
    assert said in answer.text
    assert 'role="alert"' in answer.text
    if marked:
        assert f'href="#{marked}"' in answer.text
    assert jobs_of(sessions, crew) == []


def upload(member, name, content, **headers):
    token = member.token("/new")
    sent = {"Origin": "http://testserver", "X-Form-Token": token} | headers
    return member.client.post("/uploads", files={"file": (name, content)}, headers=sent)


def test_a_file_is_taken_and_its_columns_are_guessed(member):
    rows = [{"sentence": "good", "stars": 1}, {"sentence": "bad <b>", "stars": 0}]
    stored = upload(member, "dev.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
    assert stored.status_code == 201
    seen = member.client.get(f"/uploads/{stored.json()['id']}/columns").json()
    assert seen["columns"] == ["sentence", "stars"]
    assert seen["guess"] == {"text": "sentence"}
    assert seen["rows"] == [["good", "1"], ["bad <b>", "0"]]


def test_a_file_of_another_team_shows_nothing(member, rival):
    stored = upload(member, "dev.jsonl", b'{"a": 1}\n').json()
    assert rival.client.get(f"/uploads/{stored['id']}/columns").status_code == 404


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"X-Form-Token": ""}])
def test_a_file_that_another_site_sends_is_refused(member, headers):
    assert upload(member, "dev.jsonl", b"{}", **headers).status_code == 403


def test_a_key_that_may_only_read_sees_no_form(visitor, sessions, crew):
    with session_scope(sessions) as session:
        text = create_key(session, crew.id, "reader", Scope.READ).text
    visitor.sign_in(text)
    assert visitor.get("/new").status_code == 403
    assert 'href="/new"' not in visitor.get("/").text.partition("</header>")[0]
    assert visitor.post("/new", visitor.token("/"), **FIELDS).status_code == 403


@pytest.mark.parametrize(
    ("name", "head", "guess"),
    [
        (
            "a.csv",
            b"premise,hypothesis,label\nx,y,0\n",
            {"text": "premise", "text_pair": "hypothesis", "label": "label"},
        ),
        ("a.csv", b"\xef\xbb\xbfText,Label\nx,0\n", {"text": "Text", "label": "Label"}),
        ("a.jsonl", b'{"body": "a long text", "y": 1}\n{"body": "b", "y": 1}\n', {"text": "body", "label": "y"}),
        ("a.jsonl", b'{"tokens": ["a"], "ner_tags": [0]}\n', {"tokens": "tokens", "tags": "ner_tags"}),
        ("a.json", b'{"data": [{"text": "x", "label": 1}]}', {"text": "text", "label": "label"}),
        ("a.csv.gz", gzip.compress(b"text;label\nx;0\n", mtime=0), {"text": "text", "label": "label"}),
    ],
)
def test_columns_are_guessed_by_name_and_else_by_content(name, head, guess):
    seen = preview(named(name, head))
    assert seen is not None
    assert seen.guess == guess


@given(st.sampled_from(["a.jsonl", "a.csv", "a.parquet"]), st.binary(max_size=300))
def test_no_bytes_upset_the_guess(name, head):
    seen = preview(named(name, head))
    assert seen is None or all(len(row) == len(seen.columns) for row in seen.rows)


def test_few_rows_are_shown_and_a_long_file_is_not_read():
    rows = b"".join(b'{"text": "%d", "label": "\\ud800"}\n' % row for row in range(9))
    seen = preview(named("a.jsonl", rows))
    assert seen is not None
    assert [row[0] for row in seen.rows] == ["0", "1", "2"]
    assert preview(ReferencedFile("a.jsonl", LOOK_BYTES + 1, io.BytesIO(rows))) is None


def test_the_goals_are_the_first_choice_and_no_worse_is_taken(member):
    text = html.unescape(member.get("/new").text)
    for name, about in ABOUT_GOALS.items():
        assert f'name="goal" value="{name}"' in text
        assert about.title in text
        assert about.does in text
    assert re.findall(r'name="goal" value="([a-z-]*)" checked', text) == ["no-worse"]
    assert text.index('id="goal-title"') < text.index('id="what-title"')


def test_a_goal_goes_with_the_job_and_its_number_counts_only_if_it_is_chosen(member, sessions, crew):
    send(member, goal="speedup", **{"goal.speedup": "2.5", "goal.within-points": "3"}, preset="published")
    (job,) = jobs_of(sessions, crew)
    assert job.spec["preset"] == "smallest"
    assert (job.config["target_speedup"], job.config["within_points"]) == (2.5, None)


def test_without_a_goal_the_preset_counts(member, sessions, crew):
    send(member, goal="", **{"goal.speedup": "2.5"}, preset="published")
    (job,) = jobs_of(sessions, crew)
    assert (job.spec["preset"], job.config["target_speedup"]) == ("published", None)


def test_a_number_that_a_goal_cannot_have_is_said_at_the_goals(member, sessions, crew):
    text = html.unescape(send(member, goal="speedup", **{"goal.speedup": "1"}).text)
    assert "goal 'speedup=1': times as fast must lie above 1" in text
    assert 'id="goal"' in text
    assert re.findall(r'name="goal" value="([a-z-]*)" checked', text) == ["speedup"]
    assert jobs_of(sessions, crew) == []
