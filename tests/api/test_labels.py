"""Labels of a finished job's changed answers: what is asked, who says what, what is certified by it, and what is exported."""

import random

import pytest

from axformer.labels import named
from axformer.plan.trial import Verdict
from axformer.scores.certificate import certify_sheet
from axformer.scores.labelling import needed
from axformer.wire.scopes import Scope
from store.repositories.claims import claim_next
from store.repositories.keys import create_key
from store.repositories.labels import agreed_on, labels_of
from store.session import session_scope
from store.tables.teams import Team
from tests.api.test_exports import PROGRESS
from tests.sheets import CHANGED, CLASSES, TIMES, sheet_of_path, small_sheet, truth_of

POINT = {"loss": 0.5, "removed": 0, "parameters": 10}


@pytest.fixture
def finish(stage, make_trial):
    """Makes a finished job whose result is the model of trial 2 of a sheet's path, and gives its id."""

    def made(sheet, **changes):
        trials = [make_trial(seq, **({"verdict": Verdict.ACCEPT} if seq % 2 == 0 and seq else {})) for seq in range(9)]
        job_id = stage.running(trials, PROGRESS, name="reviews", **changes)
        path = [{"seq": seq, "kept": seq == 2, **POINT} for seq in (0, 2, 4, 6, 8)]
        stage.succeed(job_id, {"answers.json": sheet.model_dump_json().encode(), "plan.json": b"{}"}, path=path)
        return job_id

    return made


def post(api, job_id, labels, **options):
    data = [{"id": row, "label": label} for row, label in labels.items()]
    return api.post(f"/v1/jobs/{job_id}/labels", json={"data": data}, **options)


def colleague(sessions, crew):
    """The headers of somebody else of the crew."""
    with session_scope(sessions) as session:
        return {"Authorization": f"Bearer {create_key(session, crew.id, 'colleague', Scope.WRITE).text}"}


def test_it_asks_for_changed_answers_alone_without_saying_what_they_were(api, finish):
    sheet = sheet_of_path()
    job_id = finish(sheet)
    asked = api.get(f"/v1/jobs/{job_id}/needed").json()
    assert [row["id"] for row in asked["data"]] == [row.id for row in needed(sheet, {})]
    assert asked["data"][0] == {"id": needed(sheet, {})[0].id, "inputs": needed(sheet, {})[0].inputs, "labels": None}
    assert (asked["classes"], asked["labels"], asked["disagreements"]) == (CLASSES, 0, [])
    (form,) = asked["forms"]
    assert (form["form"], form["times"], form["certified"], form["left"]) == ("compact", TIMES[0], [2], CHANGED[1])
    assert form["further"] == {"4": CHANGED[1], "6": CHANGED[2], "8": CHANGED[3]}
    assert form["next"] == f"At most {CHANGED[1]} more labels decide about the model with 1.60 times fewer operations."
    assert api.get(f"/v1/jobs/{job_id}").json()["labelled"] is None


@pytest.mark.parametrize("seed", range(3))
def test_labels_in_any_order_by_anyone_end_in_the_same_certificate(api, finish, sessions, crew, seed):
    sheet, chance = sheet_of_path(("compact", "onnx_int8")), random.Random(seed)
    job_id, truth, people = finish(sheet), truth_of(sheet), [{}, colleague(sessions, crew)]
    rows = list(truth)
    chance.shuffle(rows)
    while rows:
        some = [rows.pop() for _ in range(min(len(rows), chance.randint(1, 40)))]
        name = [truth[row] if chance.random() < 0.5 else named(sheet, truth[row]) for row in some]
        answer = post(api, job_id, dict(zip(some, name, strict=True)), headers=chance.choice(people))
        assert answer.status_code == 200, answer.text
    read = answer.json()
    for one in read["forms"]:
        assert one["certificate"] == certify_sheet(sheet, one["form"], truth).model_dump(mode="json")
    assert api.get(f"/v1/jobs/{job_id}").json()["labelled"] == read
    assert api.get(f"/v1/jobs/{job_id}/needed").json()["data"] == []
    assert read["forms"][0]["certificate"]["sentence"].startswith(
        f"Certified by {max(CHANGED)} labels: less than 2 points"
    )


def test_a_better_certificate_exports_its_model_once(api, finish):
    sheet = sheet_of_path()
    job_id, truth = finish(sheet, forms=["compact", "onnx"]), truth_of(sheet)
    first = {row.id: truth[row.id] for row in sheet.changed[: CHANGED[1]]}
    (exported,) = post(api, job_id, first).json()["exports"]
    assert (exported["seq"], exported["times"], exported["error"]) == (4, TIMES[1], None)
    job = api.get(f"/v1/jobs/{exported['job']}").json()
    assert (job["kind"], job["exported_from"], job["upto"], job["state"]) == ("export", job_id, 4, "queued")
    assert (job["name"], job["forms"]) == ("reviews, trial 4, certified by labels", ["compact", "onnx"])
    assert post(api, job_id, first).json()["exports"] == [exported], "once"
    more = post(api, job_id, truth).json()["exports"]
    assert [one["seq"] for one in more] == [8], "the one that nobody had begun is not needed any more"
    states = {one["id"]: one["state"] for one in api.get("/v1/jobs?kind=export").json()["data"]}
    assert states == {exported["job"]: "cancelled", more[0]["job"]: "queued"}
    refused = api.get(f"/v1/jobs/{exported['job']}/needed")
    assert (refused.status_code, refused.json()["code"]) == (409, "no_answer_sheet")
    assert f"a model of {job_id}; label the answers of that job" in refused.json()["detail"]


def test_an_export_that_was_replaced_is_queued_anew_where_labels_are_taken_back(api, finish):
    sheet = sheet_of_path()
    job_id, truth = finish(sheet), truth_of(sheet)
    first = {row.id: truth[row.id] for row in sheet.changed[: CHANGED[1]]}
    (replaced,) = post(api, job_id, first).json()["exports"]
    (better,) = post(api, job_id, truth).json()["exports"]
    back = post(api, job_id, dict.fromkeys(truth.keys() - first.keys())).json()["exports"]
    assert [one["seq"] for one in back] == [replaced["seq"]]
    states = {one["id"]: one["state"] for one in api.get("/v1/jobs?kind=export").json()["data"]}
    assert states == {replaced["job"]: "cancelled", better["job"]: "cancelled", back[0]["job"]: "queued"}


def test_an_export_that_a_worker_has_begun_goes_on(api, finish, sessions):
    sheet = sheet_of_path()
    job_id, truth = finish(sheet), truth_of(sheet)
    (begun,) = post(api, job_id, {row.id: truth[row.id] for row in sheet.changed[: CHANGED[1]]}).json()["exports"]
    with session_scope(sessions) as session:
        claimed = claim_next(session, "a:1:2", 60.0)
        assert claimed is not None
        assert claimed.id == begun["job"]
    assert [one["seq"] for one in post(api, job_id, truth).json()["exports"]] == [4, 8]
    assert api.get(f"/v1/jobs/{begun['job']}").json()["state"] == "fetching"


def test_an_export_that_cannot_be_queued_is_told_and_tried_again(api, finish, sessions, crew):
    sheet = sheet_of_path()
    job_id, truth = finish(sheet), truth_of(sheet)
    with session_scope(sessions) as session:
        session.get_one(Team, crew.id).queued_limit = 0
    (exported,) = post(api, job_id, truth).json()["exports"]
    assert (exported["job"], "queued jobs" in exported["error"]) == (None, True)
    with session_scope(sessions) as session:
        assert len(labels_of(session, job_id)) == len(truth), "the labels are kept"
        session.get_one(Team, crew.id).queued_limit = None
    one = next(iter(truth))
    (exported,) = post(api, job_id, {one: truth[one]}).json()["exports"]
    assert exported["job"] is not None


def test_a_full_queue_has_room_for_what_replaces_an_export_of_its_own(api, finish, sessions, crew):
    sheet = sheet_of_path()
    job_id, truth = finish(sheet), truth_of(sheet)
    with session_scope(sessions) as session:
        session.get_one(Team, crew.id).queued_limit = 1
    (replaced,) = post(api, job_id, {row.id: truth[row.id] for row in sheet.changed[: CHANGED[1]]}).json()["exports"]
    (better,) = post(api, job_id, truth).json()["exports"]
    assert (better["seq"], better["error"]) == (8, None)
    states = {one["id"]: one["state"] for one in api.get("/v1/jobs?kind=export").json()["data"]}
    assert states == {replaced["job"]: "cancelled", better["job"]: "queued"}


def test_an_export_stays_where_what_would_replace_it_cannot_be_queued(api, finish, sessions, crew):
    sheet = sheet_of_path()
    job_id, truth = finish(sheet), truth_of(sheet)
    (waiting,) = post(api, job_id, {row.id: truth[row.id] for row in sheet.changed[: CHANGED[1]]}).json()["exports"]
    with session_scope(sessions) as session:
        session.get_one(Team, crew.id).queued_limit = 0
    kept, refused = post(api, job_id, truth).json()["exports"]
    assert (kept, refused["seq"], refused["job"]) == (waiting, 8, None)
    assert "queued jobs" in refused["error"]
    assert api.get(f"/v1/jobs/{waiting['job']}").json()["state"] == "queued"


def test_where_people_disagree_a_row_counts_as_unlabelled_until_one_of_them_gives_in(api, finish, sessions, crew):
    sheet = sheet_of_path()
    job_id, other = finish(sheet), colleague(sessions, crew)
    row = needed(sheet, {})[0]
    agreed = post(api, job_id, {row.id: "positive"}).json()
    assert agreed["labels"] == 1
    both = post(api, job_id, {row.id: "negative"}, headers=other).json()
    assert (both["labels"], both["disagreed"]) == (0, 1)
    asked = api.get(f"/v1/jobs/{job_id}/needed").json()
    (told,) = asked["disagreements"]
    assert (told["id"], told["inputs"]) == (row.id, row.inputs)
    assert [(one["by"], one["label"]) for one in told["labels"]] == [("test", "positive"), ("colleague", "negative")]
    assert row.id not in [one["id"] for one in asked["data"]], "a third opinion does not help"
    assert post(api, job_id, {row.id: None}, headers=other).json() == agreed
    assert post(api, job_id, {row.id: "negative"}).json()["labels"] == 1, "a person may change a label"
    with session_scope(sessions) as session:
        (given,) = labels_of(session, job_id)
    assert (given.row_id, given.label, given.by) == (row.id, 0, "test")
    entries = api.get("/v1/audit").json()["data"]
    assert [entry["object_id"] for entry in entries if entry["action"] == "job.label"] == 4 * [job_id]
    assert len({entry["key_id"] for entry in entries if entry["action"] == "job.label"}) == 2


def test_of_the_numbers_that_people_give_the_mean_counts(api, finish, sessions, crew):
    sheet = small_sheet("regression")
    job_id, row = finish(sheet), sheet.changed[0]
    assert post(api, job_id, {row.id: 3}).json()["labels"] == 1
    both = post(api, job_id, {row.id: "4.5"}, headers=colleague(sessions, crew)).json()
    assert (both["labels"], both["disagreed"]) == (1, 0)
    with session_scope(sessions) as session:
        assert agreed_on(labels_of(session, job_id)) == {row.id: 3.75}
    for wrong in ("much", [1, 2], "nan", "1e39"):
        refused = post(api, job_id, {row.id: wrong})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_label")
        assert "is no number" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("wrong", "pointer", "said"),
    [
        (
            {"00000025": "great"},
            "#/data/1/label",
            "label 'great' of row 00000025 is unknown; the labels are negative, positive",
        ),
        ({"00000025": 2}, "#/data/1/label", "label 2 of row 00000025 is unknown"),
        ({"00000025": ["positive", "negative"]}, "#/data/1/label", "unknown"),
        (
            {"of another result": 1},
            "#/data/1/id",
            "row 'of another result' is none whose answer changed in this result",
        ),
    ],
)
def test_nothing_of_a_request_with_a_wrong_label_is_stored(api, finish, sessions, wrong, pointer, said):
    job_id = finish(sheet_of_path())
    refused = post(api, job_id, {"00000000": "positive"} | wrong)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_label")
    assert refused.json()["errors"][0]["pointer"] == pointer
    assert said in refused.json()["detail"]
    with session_scope(sessions) as session:
        assert labels_of(session, job_id) == []


def test_labels_of_another_result_are_refused(api, finish, stage):
    mine, theirs = sheet_of_path(), sheet_of_path()
    theirs = theirs.model_copy(
        update={"changed": [row.model_copy(update={"id": f"x{row.id}"}) for row in theirs.changed]}
    )
    first, second = finish(mine), finish(theirs)
    assert post(api, second, truth_of(mine)).status_code == 422
    assert post(api, first, truth_of(mine)).status_code == 200


def test_a_job_without_answers_says_why(api, stage, finish):
    plain = stage.succeeded({"plan.json": b"{}"})
    broken = stage.succeeded({"answers.json": b'{"format": "axformer-answers/1"}'})
    for job_id, why in ((plain, "has no file of this name"), (broken, "cannot be read"), (stage.queued(), "is queued")):
        for answer in (api.get(f"/v1/jobs/{job_id}/needed"), post(api, job_id, {"00000000": 1})):
            assert (answer.status_code, answer.json()["code"]) == (409, "no_answer_sheet")
            assert why in answer.json()["detail"]


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": 10**15},
        {"rows": 50},
        {"unlabelled": 1001},
        {"changed": 2 * sheet_of_path().changed},
        {"models": [{"seq": 1, "form": "compact", "times": 2.0, "answers": {"999": 1}}]},
        {"models": [{"seq": 1, "form": "compact", "times": 2.0, "answers": {"0": [1, 0]}}]},
    ],
)
def test_a_sheet_that_contradicts_itself_is_not_read(api, stage, changes):
    sheet = sheet_of_path().model_copy(update=changes)
    job_id = stage.succeeded({"answers.json": sheet.model_dump_json(warnings=False).encode()})
    assert api.get(f"/v1/jobs/{job_id}/needed").status_code == 409


def test_where_no_labels_help_it_says_how_far_out_of_reach_the_next_model_is(api, finish):
    sheet = sheet_of_path()
    job_id = finish(sheet)
    lost = {row.id: row.before for row in sheet.changed[: CHANGED[1]]}
    (form,) = post(api, job_id, lost).json()["forms"]
    assert (form["left"], form["certified"]) == (0, [2])
    assert form["best_p_value"] > 0.05
    assert form["next"].startswith("No labels can certify the model with 1.60 times fewer operations: were all of them")
    assert api.get(f"/v1/jobs/{job_id}/needed").json()["data"] == []


def test_labels_go_with_their_job(api, finish, sessions):
    sheet = sheet_of_path()
    job_id = finish(sheet)
    post(api, job_id, truth_of(sheet))
    assert api.delete(f"/v1/jobs/{job_id}").status_code == 204
    with session_scope(sessions) as session:
        assert labels_of(session, job_id) == []
