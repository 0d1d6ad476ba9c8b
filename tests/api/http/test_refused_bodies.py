"""Bodies of jobs that are refused: each error names its place, what was wrong, and what was probably meant."""

import json

from hypothesis import HealthCheck, given
from hypothesis import settings as law
from hypothesis import strategies as st

from axformer.config import PassConfig
from axformer.wire.finetuning import FinetuneSettings

KNOBS = list(PassConfig.model_fields)
JSON = {"Content-Type": "application/json"}


def nested(levels: int) -> list:
    """Lists within each other."""
    value: list = []
    for _ in range(levels - 1):
        value = [value]
    return value


BAD_FIELDS = [
    ({"name": None}, "#/name", "string"),
    ({"name": ""}, "#/name", "at least 1"),
    ({"name": "zero\0byte"}, "#/name", "match"),
    ({"name": "half a pair \ud800"}, "#/name", "string"),
    ({"webhok": "x"}, "#/webhok", "Unknown field; did you mean webhook? If not, leave it out"),
    ({"colour": "x"}, "#/colour", "Unknown field; leave it out"),
    ({"checkpoint": {}}, "#/checkpoint/uri", "required"),
    ({"checkpoint": {"uri": "s3://acme/b/", "sha256": "A" * 64}}, "#/checkpoint/sha256", "match"),
    ({"checkpoint": {"uri": "ftp://x"}}, "#/checkpoint/uri", "ftp://x"),
    ({"checkpoint": "ftp://x"}, "#/checkpoint/uri", "ftp://x"),
    ({"checkpoint": ""}, "#/checkpoint/uri", "at least 1"),
    (
        {"checkpoint": 5},
        "#/checkpoint",
        'must be a reference such as "hf://org/name" or an object such as {"uri": "hf://org/name"}, not 5',
    ),
    (
        {"test": ["s3://acme/b"]},
        "#/test",
        'must be a reference such as "hf://datasets/org/name/dev.jsonl" or an object',
    ),
    ({"validation": {"uri": "s3://acme/b", "columns": {"txt": "x"}}}, "#/validation/columns/txt", "mean text?"),
    ({"checkpoint": {"uri": "s3://acme/b", "sha": "x"}}, "#/checkpoint/sha", "did you mean sha256?"),
    ({"validation": {"uri": "s3://acme/b", "columns": {"text": "\0"}}}, "#/validation/columns", "zero byte"),
    ({"test": {"uri": "file:///etc/rows.csv"}}, "#/test/uri", "outside of the directories"),
    ({"forms": ["tiny"]}, "#/forms/0", "'onnx_int8'"),
    ({"forms": ["onx"]}, "#/forms/0", 'not "onx"; did you mean onnx?'),
    ({"forms": []}, "#/forms", "at least 1"),
    (
        {"preset": "smallest", "calibrate": {"uri": "file:///etc/rows.csv"}},
        "#/calibrate/uri",
        "outside of the directories",
    ),
    (
        {"calibrate": {"uri": "s3://acme/b.csv"}},
        "#/calibrate",
        "method=axformer fits none without repair=refit",
    ),
    ({"preset": "smallest", "config": {"leaving": "magnitude"}}, "#/config", "is of an earlier version"),
    ({"config": {"ties_help": True}}, "#/config", "give it with preset=published"),
    ({"train": {"uri": "file:///etc/rows.csv"}}, "#/train/uri", "outside of the directories"),
    ({"finetune": {"epochs": 2}}, "#/finetune", "give train too"),
    ({"head": {"task": "regression"}}, "#/head", "give train too"),
    (
        {"config": {"method": "rank", "finetune_each": 1}},
        "#/config",
        "trains after every step, and there is no training",
    ),
    (
        {"config": {"method": "compress", "polish": 2}, "train": {"uri": "s3://acme/b.csv"}},
        "#/train",
        "no certificate would hold for one that is trained again; give these rows as calibrate instead of train",
    ),
    ({"head": {"task": "guessing"}}, "#/head/task", "'classification', 'multi_label_classification'"),
    ({"head": {"task": "classification", "labels": ["a"]}}, "#/head", "needs the names of at least 2 classes, not 1"),
    ({"head": {"task": "regression", "labels": ["a"]}}, "#/head", "has no classes"),
    ({"train": {"uri": "s3://acme/b"}, "finetune": {"epochs": 0}}, "#/finetune/epochs", "greater than or equal to 1"),
    ({"train": {"uri": "s3://acme/b"}, "finetune": {"epoch": 1}}, "#/finetune/epoch", "mean epochs?"),
    ({"preset": "fast"}, "#/preset", "'paper', 'published', 'robust' or 'smallest'"),
    ({"preset": "papers"}, "#/preset", "did you mean paper?"),
    (
        {"goal": "fast"},
        "#/goal",
        "there are no-worse, within-points=1, same-answers=98, speedup=2, operations=2, fewer-layers=1, as-paper",
    ),
    ({"goal": "speedup=0.5"}, "#/goal", "must lie above 1"),
    ({"goal": "no-worse", "preset": "paper"}, "#/goal", "leave goal 'no-worse' or preset 'paper' out"),
    ({"goal": "speedup=2", "config": {"confirm": 2}}, "#/config", "confirm=2"),
    ({"config": {"refine_margin": 0.5}}, "#/config", "refine_margin=0.5"),
    ({"config": {"refine_margin": float("nan")}}, "#/config", "refine_margin=nan"),
    ({"config": {"what": 2}}, "#/config", "the knobs are method, seed"),
    ({"config": {"speedup": 2}}, "#/config", "knob 'speedup' is unknown; did you mean target_speedup?"),
    ({"config": {"method": ["axformer"]}}, "#/config", "is unknown; there are axformer"),
    ({"config": {"order": "explicit"}}, "#/config", "give both or neither"),
    ({"preset": "published", "config": {"order": "explicit", "explicit_order": ["layer.\0"]}}, "#/config", "zero byte"),
    ({"config": {"order": "\ud800"}}, "#/config", "half of a character"),
    ({"config": {"\udfff": 1}}, "#/config", "half of a character"),
    (
        {"validation": {"uri": "s3://acme/b", "columns": {"text": "\ud800"}}},
        "#/validation/columns",
        "half of a character",
    ),
    ({"config": {"order": nested(400)}}, "#/config", "more than 32 levels"),
    ({"config": {"order": nested(33)}}, "#/config", "more than 32 levels"),
    ({"config": {"seed": -1}}, "#/config", "seed=-1"),
    ({"priority": 101}, "#/priority", "101"),
    ({"priority": "1"}, "#/priority", "integer"),
    ({"labels": {"a:b": "x"}}, "#/labels/a:b/[key]", "match"),
    ({"labels": {str(number): "x" for number in range(17)}}, "#/labels", "16"),
    ({"checkpoint": {"uri": "upload:upl_" + "0" * 32}}, "#/checkpoint/uri", "not an upload of your team"),
]


def test_a_bad_field_is_named_with_its_place_and_nothing_is_made(api, body, subtests):
    for change, pointer, says in BAD_FIELDS:
        with subtests.test(change=change):
            answer = api.post("/v1/jobs", content=json.dumps(body | change), headers=JSON)
            problem = answer.json()
            assert (answer.status_code, answer.headers["Content-Type"]) == (422, "application/problem+json")
            assert [error["pointer"] for error in problem["errors"]] == [pointer]
            assert says in problem["detail"]
    assert api.get("/v1/jobs").json()["data"] == []


def test_unknown_knobs_are_named_with_all_else_that_is_wrong(api, body):
    wrong = body | {"config": {"speedup": 2, "seed": 1}}
    for change, pointer, code in (
        ({"priority": 101}, "#/priority", "invalid_request"),
        ({"checkpoint": "ftp://x"}, "#/checkpoint/uri", "invalid_reference"),
    ):
        problem = api.post("/v1/jobs", json=wrong | change).json()
        assert [error["pointer"] for error in problem["errors"]] == [pointer, "#/config"]
        assert problem["errors"][1]["detail"] == "knob 'speedup' is unknown; did you mean target_speedup?"
        assert problem["code"] == code
    many = api.post("/v1/jobs", json=body | {"forms": 1000 * ["onx"], "config": {f"x{n}": 1 for n in range(1000)}})
    assert "992 more knobs are unknown" in many.json()["detail"]


TEXT = st.text(max_size=8) | st.sampled_from(
    ["hf://a/b", "s3://acme/b", "file:///x", "upload:x", "https://[", "\0", "\ud800"]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT | st.sampled_from(KNOBS), inner, max_size=3),
    max_leaves=6,
)
REFERENCE = ANYTHING | st.fixed_dictionaries({"uri": TEXT}, optional={"columns": ANYTHING})
BODIES = st.fixed_dictionaries(
    {"name": st.just("job") | ANYTHING, "checkpoint": REFERENCE, "validation": REFERENCE},
    optional={
        "test": REFERENCE,
        "calibrate": REFERENCE,
        "train": REFERENCE,
        "finetune": ANYTHING | st.dictionaries(st.sampled_from(list(FinetuneSettings.model_fields)), ANYTHING),
        "head": ANYTHING | st.fixed_dictionaries({"task": ANYTHING}, optional={"labels": ANYTHING}),
        "preset": ANYTHING,
        "config": ANYTHING | st.dictionaries(st.sampled_from(KNOBS), ANYTHING, max_size=3),
        "priority": ANYTHING,
        "labels": ANYTHING | st.dictionaries(TEXT, TEXT, max_size=3),
    },
)


@law(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=BODIES)
def test_whatever_is_posted_is_taken_or_refused_with_its_place(api, sent):
    answer = api.post("/v1/jobs", content=json.dumps(sent), headers=JSON)
    assert answer.status_code in (202, 422)
    if answer.status_code == 422:
        assert all(error["pointer"].startswith("#") for error in answer.json()["errors"])


BAD_BODIES = [
    (b"", JSON, 422),
    (b"{", JSON, 422),
    (b"[]", JSON, 422),
    (b"name=x", {"Content-Type": "application/x-www-form-urlencoded"}, 422),
    (b"\xff", JSON, 400),
    (b"[" * 60_000, JSON, 400),
    (b'{"name":' + b"9" * 5000 + b"}", JSON, 400),
]


def test_a_body_that_is_no_object_is_refused(api, subtests):
    for content, headers, status in BAD_BODIES:
        with subtests.test(content=content[:20]):
            answer = api.post("/v1/jobs", content=content, headers=headers)
            assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert "send it with 'Content-Type: application/json'" in api.post("/v1/jobs", data={"name": "x"}).json()["detail"]
