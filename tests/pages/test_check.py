"""Check only reads what is uploaded or lies on this machine, and says what it is or why a worker would stop at it."""

import gzip
import html
import io
import json
import re
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from api.places import Places
from axformer.scores.planning import free_of_labels_told
from tests.pages.test_new_job import jobs_of, send

CONFIG = {
    "architectures": ["BertForSequenceClassification"],
    "model_type": "bert",
    "num_hidden_layers": 6,
    "id2label": {"0": "negative", "1": "positive"},
    "label2id": {"negative": 0, "positive": 1},
}
CHECKPOINT = {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": b"w" * 100, "tokenizer.json": b"{}"}
ROWS = b"text;label\nfine;positive\ngood;positive\nbad;negative\n"


def packed(files, link=None):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        if link is not None:
            member = tarfile.TarInfo("config.json")
            member.type, member.linkname = tarfile.SYMTYPE, link
            archive.addfile(member)
    return made.getvalue()


@pytest.fixture
def upload(client, crew):
    def sent(name, content):
        answer = client.post("/v1/uploads", files={"file": (name, content)}, headers=crew.headers)
        assert answer.status_code == 201, answer.text
        return answer.json()["uri"]

    return sent


def check(member, **fields):
    """What the notice of a check says, in lines, and whether it warns."""
    text = send(member, do="check", **fields).text
    notice = re.search(r'<div class="notice (good|bad)"[^>]*id="(?:fine|stops)">(.*?)</div>', text, re.DOTALL)
    assert notice, text
    lines = [
        html.unescape(re.sub(r"<[^>]+>", "", line)) for line in re.findall(r"<li[^>]*>(.*?)</li>", notice[2], re.DOTALL)
    ]
    return lines, notice[1] == "bad"


def test_it_says_what_the_inputs_are(member, upload, sessions, crew):
    checkpoint, validation = upload("reviews.tar.gz", packed(CHECKPOINT)), upload("dev.csv", ROWS)
    lines, is_bad = check(member, checkpoint=checkpoint, validation=validation, test="s3://acme/test.csv")
    assert lines == [
        "Checkpoint reviews.tar.gz: Bert for sequence classification, 6 layers, 2 classes (negative, positive).",
        "Validation data dev.csv: 3 rows, columns text, label; labels positive 2, negative 1.",
        "Held-out data: is read by a worker, not here.",
        "How long it takes is known once a job with this method has succeeded here.",
    ]
    assert not is_bad
    assert jobs_of(sessions, crew) == []


def test_a_base_model_is_looked_at_with_its_new_head(member, upload):
    bare = packed(CHECKPOINT | {"config.json": json.dumps({"model_type": "bert", "num_hidden_layers": 6}).encode()})
    validation, head = (
        upload("dev.csv", ROWS),
        {"head": "classification=negative,positive", "train": "s3://acme/train.csv"},
    )
    lines, is_bad = check(member, checkpoint=upload("base.tar.gz", bare), validation=validation, **head)
    assert lines[:2] == [
        "Checkpoint base.tar.gz: a base model for sequence classification, 6 layers, 2 classes (negative, positive).",
        "Validation data dev.csv: 3 rows, columns text, label; labels positive 2, negative 1.",
    ]
    assert not is_bad


@pytest.mark.parametrize(
    ("rows", "columns"), [(b"text\nfine\n", "text"), (b"question,context\na,b\n", "question, context")]
)
def test_an_embedder_is_known_by_its_files_and_needs_no_label(member, upload, rows, columns):
    config = json.dumps({"architectures": ["BertModel"], "model_type": "bert", "num_hidden_layers": 6}).encode()
    files = CHECKPOINT | {"config.json": config, "modules.json": b"[]", "1_Pooling/config.json": b"{}"}
    given = {"checkpoint": upload("mini.tar.gz", packed(files)), "unlabelled": upload("texts.csv", rows)}
    lines, _ = check(member, **given, validation="", goal="operations", **{"goal.operations": "2"})
    assert lines[:2] == [
        "Checkpoint mini.tar.gz: Bert for sentence embeddings, 6 layers.",
        f"Unlabelled rows texts.csv: 1 rows, columns {columns}.",
    ]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ({"query": "who", "passages": ["he", "she"]}, "1 rows, columns query, passages."),
        ({"passages": ["he", "she"]}, "has no column 'query', it has passages"),
    ],
)
def test_passages_for_a_model_with_one_output_need_a_query_and_no_label(member, upload, rows, told):
    config = {"architectures": ["BertForSequenceClassification"], "model_type": "bert", "num_hidden_layers": 6}
    files = CHECKPOINT | {"config.json": json.dumps(config | {"id2label": {"0": "LABEL_0"}}).encode()}
    given = {"checkpoint": upload("ranker.tar.gz", packed(files))}
    given["unlabelled"] = upload("lists.jsonl", json.dumps(rows).encode())
    lines, is_bad = check(member, **given, validation="", goal="operations", **{"goal.operations": "2"})
    assert lines[1].startswith("Unlabelled rows lists.jsonl: ")
    assert told in lines[1]
    assert is_bad == ("has no column" in told)


def test_rows_that_cannot_certify_the_points_are_told_before_the_job_is_posted(member, upload):
    checkpoint, rows = upload("reviews.tar.gz", packed(CHECKPOINT)), b"text,label\n" + b"fine,positive\n" * 1000
    given = {"checkpoint": checkpoint, "validation": upload("dev.csv", rows), "goal": "within-points"}
    lines, is_bad = check(member, **given, **{"goal.within-points": "1"})
    (told,) = (line for line in lines if line.startswith("Certificate: "))
    assert told.startswith("Certificate: within_points=1: 400 confirming rows certify it in less than 80% of cases")
    assert not is_bad
    lines, _ = check(member, **given, **{"goal.within-points": "5"})
    assert not [line for line in lines if line.startswith("Certificate")]
    lines, _ = check(member, **given | {"goal": "no-worse"})
    assert not [line for line in lines if line.startswith("Certificate")]


@pytest.mark.parametrize(
    ("count", "points", "calibrates", "stops"),
    [(1000, 1, True, False), (1000, 2, True, False), (400, 1, True, True), (400, 1, False, False)],
)
def test_what_unlabelled_rows_certify_is_told_before_the_job_is_posted(
    member, upload, count, points, calibrates, stops
):
    rows = b"text\n" + b"".join(b"fine %d\n" % row for row in range(count))
    given = {"checkpoint": upload("m.tar.gz", packed(CHECKPOINT)), "unlabelled": upload("traffic.csv", rows)}
    given |= {} if calibrates else {"calibrate": upload("train.csv", rows)}
    lines, is_bad = check(member, **given, validation="", goal="within-points", **{"goal.within-points": str(points)})
    assert f"Unlabelled rows traffic.csv: {count:,} rows, columns text." in lines
    confirming = count // 2 if calibrates else count
    told, can_certify = free_of_labels_told(confirming, points)
    (certificate,) = (line for line in lines if line.startswith("Certificate"))
    assert certificate == f"Certificate: {f'at least {confirming} rows confirm: ' if can_certify else ''}{told}."
    assert (is_bad, can_certify) == (stops, not stops)


def test_a_file_keeps_its_own_name_beside_its_reference(member, upload):
    text = send(member, do="check", checkpoint=upload("reviews.tar.gz", packed(CHECKPOINT))).text
    assert re.search(r'id="checkpoint-note"[^>]*><b>reviews.tar.gz</b>', text)


@pytest.mark.parametrize(
    ("problem", "content"),
    [
        ("multi_label_classification", b"text,negative,positive\nfine,0,1\n"),
        ("multi_label_classification", b'text,labels\nfine,"positive,negative"\n'),
        ("regression", b'text,labels\nfine,"[0.5, 1.5]"\n'),
        ("regression", b'text,label\nfine,"[0.5, 1.5]"\n'),
    ],
)
def test_data_that_a_worker_reads_is_not_refused(member, upload, problem, content):
    checkpoint = packed(CHECKPOINT | {"config.json": json.dumps(CONFIG | {"problem_type": problem}).encode()})
    lines, is_bad = check(member, checkpoint=upload("m.tar.gz", checkpoint), validation=upload("dev.csv", content))
    assert not is_bad
    assert lines[1].startswith("Validation data dev.csv: 1 rows, columns text, ")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("dev.csv", ROWS.replace(b"negative", b"awful"), "label 'awful' is unknown to the model; it knows 0 (negative)"),
        ("dev.csv", ROWS.replace(b"label", b"verdict"), "label"),
        ("dev.csv", b"text,label\nno end,\"", "dev.csv"),
        ("dev.csv", b"text,label\n", "no rows"),
        ("dev.txt", ROWS, "line 1 has one column, not two"),
    ],
    ids=count(),
)  # fmt: skip
def test_data_that_a_worker_would_stop_at_is_told(member, upload, name, content, said):
    lines, is_bad = check(member, checkpoint=upload("m.tar.gz", packed(CHECKPOINT)), validation=upload(name, content))
    assert is_bad
    assert said in lines[1]
    assert lines[1].startswith(f"Validation data {name}: ")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("m.tar.gz", b"not packed", "is damaged"),
        ("m.zip", b"PK not packed", "is damaged"),
        ("m.tar.gz", packed({"readme.md": b""}), "holds no config.json"),
        ("m.tar.gz", packed({"config.json": CHECKPOINT["config.json"]}), "holds no .safetensors"),
        ("m.tar.gz", packed(CHECKPOINT | {"adapter_config.json": b"{}"}), "an adapter lies beside its weights"),
        ("m.tar.gz", packed({n: c for n, c in CHECKPOINT.items() if n != "tokenizer.json"}), "holds no tokenizer"),
        ("m.tar.gz", packed(CHECKPOINT | {"config.json": b"{"}), "config.json cannot be read"),
        ("m.tar.gz", packed(CHECKPOINT | {"config.json": b"[]"}), "it is not an object"),
        ("m.tar.gz", packed(CHECKPOINT | {"config.json": b"{}"}), "names no architectures"),
        ("m.tar.gz", packed({}, link="/etc/passwd"), "not a regular file"),
        ("m.tar.gz", packed({"../config.json": b"{}"}), "leaves it"),
        ("m.tar.gz", packed({"a.safetensors": b"\0" * (17 << 20)} | CHECKPOINT), "too long to be looked at"),
    ],
    ids=count(),
)  # fmt: skip
def test_a_checkpoint_that_a_worker_would_stop_at_is_told(member, upload, name, content, said):
    lines, is_bad = check(member, checkpoint=upload(name, content), validation=upload("dev.csv", ROWS))
    assert is_bad
    assert said in lines[0]
    assert "3 rows" in lines[1]  # the data is looked at all the same


def test_an_archive_that_unpacks_to_too_much_is_described_by_what_comes_first(member, upload):
    content = packed(CHECKPOINT | {"model.safetensors": b"\0" * (17 << 20)})
    lines, is_bad = check(member, checkpoint=upload("m.tar.gz", content))
    assert (lines[0].startswith("Checkpoint m.tar.gz: Bert for"), is_bad) == (True, False)


def test_a_compressed_file_is_not_unpacked_without_end(member, upload):
    lines, is_bad = check(
        member, validation=upload("dev.csv.gz", gzip.compress(b"text,label\n" + b"a,0\n" * (5 << 20)))
    )
    assert is_bad
    assert "holds more than" in lines[1]


def test_files_of_this_machine_are_read_under_the_opened_directories_alone(member, file_root, tmp_path):
    directory = file_root / "model"
    directory.mkdir()
    for name, content in CHECKPOINT.items():
        (directory / name).write_bytes(content)
    (file_root / "dev.csv").write_bytes(ROWS)
    fields = {"checkpoint": f"file://{directory}", "validation": f"file://{file_root}/dev.csv"}
    lines, is_bad = check(member, **fields)
    assert not is_bad
    assert lines[0].startswith("Checkpoint model: Bert for sequence classification, 6 layers")
    (tmp_path / "secret.json").write_bytes(CHECKPOINT["config.json"])
    (directory / "config.json").unlink()
    (directory / "config.json").symlink_to(tmp_path / "secret.json")
    lines, is_bad = check(member, **fields)
    assert is_bad
    assert "outside of the directories" in lines[0]
    lines, is_bad = check(member, checkpoint=f"file://{file_root}/none", validation=f"file://{file_root}/none.csv")
    assert is_bad
    assert all("does not exist" in line for line in lines[:2])


def test_what_only_a_worker_reads_is_left_to_it(member, upload):
    lines, is_bad = check(member, validation=upload("dev.parquet", b"PAR1 not parquet"))
    assert not is_bad
    assert lines[:2] == [
        "Checkpoint: is read by a worker, not here.",
        "Validation data dev.parquet: Parquet and Arrow are read by the worker alone.",
    ]


@pytest.mark.parametrize(
    ("architecture", "problem", "columns"),
    [
        ("BertForSequenceClassification", None, "text text_pair label"),
        ("BertForSequenceClassification", "multi_label_classification", "text text_pair labels"),
        ("BertForTokenClassification", None, "tokens tags"),
        ("BertForQuestionAnswering", None, "question context answers"),
        ("GPT2LMHeadModel", None, "text"),
        ("BertModel", None, None),
    ],
)
def test_an_uploaded_checkpoint_tells_its_task(member, upload, architecture, problem, columns):
    config = CONFIG | {"architectures": [architecture], "problem_type": problem}
    content = packed(CHECKPOINT | {"config.json": json.dumps(config).encode()})
    upload_id = upload("m.tar.gz", content).removeprefix("upload:")
    assert member.get(f"/uploads/{upload_id}/model").json()["columns"] == columns


def test_an_upload_that_is_no_checkpoint_says_why_and_those_of_others_are_not_looked_at(member, rival, upload):
    upload_id = upload("dev.csv", ROWS).removeprefix("upload:")
    answer = member.get(f"/uploads/{upload_id}/model").json()
    assert (answer["columns"], "is not an archive" in answer["words"]) == (None, True)
    assert rival.get(f"/uploads/{upload_id}/model").status_code == 404


def test_no_session_is_open_while_a_file_is_read(member, upload, app, monkeypatch):
    """Or a few long looks would be all sessions that the teams have."""
    checkpoint = upload("m.tar.gz", packed(CHECKPOINT)).removeprefix("upload:")
    data = upload("dev.csv", ROWS).removeprefix("upload:")
    resources, held = app.state.resources, []
    read = type(resources.storage).read

    def watched(self, *arguments, **named):
        held.append(resources.engine.pool.checkedout())
        return read(self, *arguments, **named)

    monkeypatch.setattr(type(resources.storage), "read", watched)
    for path in (f"/uploads/{checkpoint}/model", f"/uploads/{data}/columns"):
        assert member.get(path).status_code == 200
    lines, _ = check(member, checkpoint=f"upload:{checkpoint}", validation=f"upload:{data}")
    assert lines[1].startswith("Validation data dev.csv: ")
    assert len(held) >= 4
    assert set(held) == {0}


def test_a_long_look_keeps_neither_another_team_nor_other_pages_waiting(member, rival, upload, app, monkeypatch):
    model = upload("m.tar.gz", packed(CHECKPOINT)).removeprefix("upload:")
    resources, began, ends = app.state.resources, threading.Event(), threading.Event()
    resources.looks = Places("looks into files", 2, 1, wait_seconds=0.2)
    read = type(resources.storage).read

    def held(self, *arguments, **named):
        began.set()
        assert ends.wait(60)
        return read(self, *arguments, **named)

    monkeypatch.setattr(type(resources.storage), "read", held)
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(member.get, f"/uploads/{model}/model")
        assert began.wait(60)
        again = member.client.get(f"/uploads/{model}/model")
        assert (again.status_code, again.headers["Retry-After"]) == (429, "5")
        assert member.get("/").status_code == 200
        with resources.looks.taken("another team"):
            pass
        ends.set()
        assert long.result().status_code == 200
    assert member.get(f"/uploads/{model}/model").status_code == 200
