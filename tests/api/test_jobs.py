"""Jobs over HTTP: posted, found, listed, cancelled, retried, deleted, and by nobody but their team."""

from concurrent.futures import ThreadPoolExecutor

from axformer.config import make_config
from axformer.forms.kinds import KINDS
from axformer.wire.finetuning import FinetuneSettings
from tests.statements import reads_report, said_to

JOB = "/v1/jobs/{}"


def test_a_posted_job_is_queued_and_every_setting_is_echoed(api):
    sent = {
        "name": "reviews",
        "checkpoint": {"uri": "https://example.org/bert.tar.gz?signature=secret"},
        "validation": {"uri": "s3://acme/dev.csv", "columns": {"text": "sentence"}},
        "test": {"uri": "hf://datasets/acme/reviews/test.csv", "sha256": "ab" * 32},
        "train": {"uri": "s3://acme/train.csv"},
        "finetune": {"epochs": 2},
        "preset": "published",
        "config": {"refine_margin": 1.5},
        "priority": 3,
        "labels": {"project": "reviews"},
    }
    answer = api.post("/v1/jobs", json=sent)
    job = answer.json()
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert (job["state"], job["attempt"], job["preset"], job["priority"]) == ("queued", 0, "published", 3)
    assert job["config"] == make_config("published", {"refine_margin": 1.5}).model_dump(mode="json")
    assert job["validation"]["columns"] == {"text": "sentence"}
    assert (job["test"], job["labels"]) == (sent["test"], sent["labels"])
    assert job["forms"] == ["compact", "onnx_int8"]
    assert job["train"] == sent["train"]
    assert job["finetune"] == FinetuneSettings(epochs=2).model_dump()
    assert job["checkpoint"] == {"uri": "https://example.org/bert.tar.gz?…"}
    assert job["created_at"].endswith("Z")
    found = api.get(answer.headers["Location"]).json()
    assert found.pop("queue")["position"] == 1
    assert job.pop("queue") is None
    assert found == job


def test_a_new_head_is_echoed_and_brings_its_own_training_defaults(api, body):
    sent = {"task": "classification", "labels": ["no", "yes"]}
    job = api.post("/v1/jobs", json=body | {"head": sent, "train": {"uri": "s3://acme/train.csv"}}).json()
    assert job["head"] == sent
    assert (job["finetune"]["epochs"], job["finetune"]["learning_rate"]) == (3, 5e-5)
    assert api.get(f"/v1/jobs/{job['id']}").json()["head"] == sent


def test_data_that_calibrates_goes_with_a_method_that_fits(api, body):
    sent = {"uri": "s3://acme/texts.csv", "columns": {"text": "sentence"}}
    job = api.post("/v1/jobs", json=body | {"preset": "smallest", "calibrate": sent}).json()
    assert job["calibrate"] == sent
    assert api.get(f"/v1/jobs/{job['id']}").json()["calibrate"] == job["calibrate"]
    order_alone = body | {"preset": "smallest", "config": {"repair": "none"}, "calibrate": sent}
    assert api.post("/v1/jobs", json=order_alone).status_code == 202, "the order of leaving is measured on it"
    alone = api.post("/v1/jobs", json=body | {"preset": "smallest"}).json()
    assert (alone["config"]["confirm"], job["config"]["confirm"]) == (0.4, 0.8), (
        "more rows confirm where others calibrate"
    )
    assert api.post("/v1/jobs", json=body).json()["calibrate"] is None


def test_unlabelled_rows_go_beside_validation_data_or_in_its_place_where_no_label_is_needed(api, body):
    sent = {"uri": "s3://acme/traffic.csv", "columns": {"text": "sentence"}}
    both = api.post("/v1/jobs", json=body | {"unlabelled": sent, "goal": "within-points=1"}).json()
    assert (both["unlabelled"], both["validation"]) == (sent, {"uri": "s3://acme/dev.csv"})
    alone = {name: value for name, value in body.items() if name != "validation"}
    for goal in ("same-answers=98", "operations=2", "within-points=1"):
        job = api.post("/v1/jobs", json=alone | {"unlabelled": sent, "goal": goal}).json()
        assert (job["validation"], job["unlabelled"], job["posted"]["unlabelled"]) == (None, sent, sent)
        assert api.get(f"/v1/jobs/{job['id']}").json()["unlabelled"] == sent
    for wrong in ({}, {"unlabelled": sent}, {"unlabelled": sent, "goal": "no-worse"}):
        refused = api.post("/v1/jobs", json=alone | wrong)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "#/validation")
    refused = api.post("/v1/jobs", json=body | {"unlabelled": sent, "goal": "same-answers"})
    assert refused.json()["errors"][0]["pointer"] == "#/goal"


def test_a_string_is_short_for_a_reference(api, body):
    whole = {"checkpoint": {"uri": "hf://acme/bert"}} | {
        part: {"uri": f"s3://acme/{part}.csv"} for part in ("validation", "test", "calibrate", "train")
    }
    short = {part: reference["uri"] for part, reference in whole.items()}
    sent = body | {"preset": "smallest"}
    job = api.post("/v1/jobs", json=sent | short, headers={"Idempotency-Key": "short"})
    assert {part: job.json()[part] for part in whole} == whole
    again = api.post("/v1/jobs", json=sent | whole, headers={"Idempotency-Key": "short"})
    assert again.json()["id"] == job.json()["id"], "both are the same request"


def test_a_goal_stands_in_the_place_of_a_preset(api, body):
    plain = {name: value for name, value in body.items() if name != "preset"}
    job = api.post("/v1/jobs", json=plain | {"goal": "within-points=2", "config": {"table_rows": 64}}).json()
    assert job["preset"] == "smallest"
    assert (job["config"]["within_points"], job["config"]["table_rows"]) == (2.0, 64)


def test_the_compact_form_is_always_there(api, body):
    posted = api.post("/v1/jobs", json=body | {"forms": ["onnx", "zeroed", "onnx"]}).json()
    assert posted["forms"] == ["compact", "zeroed", "onnx"]
    assert api.post("/v1/jobs", json=body | {"forms": list(KINDS)}).json()["forms"] == list(KINDS)


def test_the_same_key_makes_one_job_and_another_body_is_refused(api, body):
    key = {"Idempotency-Key": "nightly"}
    first = api.post("/v1/jobs", json=body, headers=key)
    again = api.post("/v1/jobs", json=body, headers=key)
    other = api.post("/v1/jobs", json=body | {"name": "other"}, headers=key)
    assert (first.status_code, again.status_code, other.status_code) == (202, 202, 422)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (again.json(), again.headers["Location"]) == (first.json(), first.headers["Location"])
    assert (other.json()["code"], other.json()["errors"][0]["parameter"]) == (
        "idempotency_key_reused",
        "Idempotency-Key",
    )


def test_the_same_key_of_two_teams_is_two_keys(api, body, rivals):
    key = {"Idempotency-Key": "nightly"}
    ours = api.post("/v1/jobs", json=body, headers=key)
    theirs = api.post("/v1/jobs", json=body | {"name": "x"}, headers=key | rivals.headers)
    assert (ours.status_code, theirs.status_code) == (202, 202)
    assert ours.json()["id"] != theirs.json()["id"]


def test_many_posts_at_once_with_one_key_make_one_job(api, body):
    def post(_):
        return api.post("/v1/jobs", json=body, headers={"Idempotency-Key": "storm"})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(post, range(16)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1
    assert len(api.get("/v1/jobs").json()["data"]) == 1


def test_an_idempotency_key_is_a_short_plain_text(api, body, subtests):
    for key in ("", "x" * 256, "naïve"):
        with subtests.test(key=key):
            answer = api.post("/v1/jobs", json=body, headers={"Idempotency-Key": key.encode()})
            assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, "idempotency-key")


def test_pages_show_every_job_once_though_jobs_come_and_go(api, stage):
    there = [stage.queued() for _ in range(7)]
    seen, after = [], {}
    for _ in range(3):
        page = api.get("/v1/jobs", params={"limit": 3} | after).json()
        seen += [job["id"] for job in page["data"]]
        after = {"after": page["next"]}
        stage.queued()  # newer than all that is still to come
        api.post(JOB.format(seen[-1]) + "/cancel")
        api.delete(JOB.format(seen[-1]))  # the very job that the cursor names
    assert seen == there[::-1]
    assert page["has_more"] is False


def test_the_id_of_the_last_job_is_a_cursor_too(api, stage):
    first, second = stage.queued(), stage.queued()
    assert [job["id"] for job in api.get("/v1/jobs", params={"after": second}).json()["data"]] == [first]


def test_filters(api, stage):
    plain = stage.queued()
    both = stage.queued(labels={"project": "reviews", "run": "a:b"})
    cancelled = stage.queued(labels={"project": "reviews"})
    api.post(JOB.format(cancelled) + "/cancel")

    def found(**params):
        return [job["id"] for job in api.get("/v1/jobs", params=params).json()["data"]]

    assert found(state="queued") == [both, plain]
    assert found(state=["queued", "cancelled"]) == [cancelled, both, plain]
    assert found(label="project:reviews") == [cancelled, both]
    assert found(label=["project:reviews", "run:a:b"]) == [both]
    assert found(label=["run:a:b", "run:a:b"]) == [both]
    assert found(label=["run:other", "run:a:b"]) == []
    assert found(label="project:reviews", state="cancelled") == [cancelled]


def test_a_missed_target_is_an_outcome_of_a_succeeded_job(api, stage, make_trial):
    made = {}
    for name, target in (("plain", None), ("reached", True), ("missed", False)):
        made[name] = stage.running([make_trial(0)])
        report = {} if target is None else {"target": {"reached": target, "sentence": "So it was."}}
        stage.succeed(made[name], {"plan.json": b"{}"}, **report)
    stage.queued()

    def found(**params):
        return [job["id"] for job in api.get("/v1/jobs", params=params).json()["data"]]

    assert found(outcome="target_missed") == [made["missed"]]
    assert found(outcome="done") == [made["reached"], made["plain"]]
    assert [job["outcome"] for job in api.get("/v1/jobs").json()["data"]] == [None, "target_missed", "done", "done"]
    last = api.get(JOB.format(made["missed"]) + "/events", params={"limit": 50}).json()["data"][-1]
    assert (last["type"], last["data"]["outcome"]) == ("job.succeeded", "target_missed")


BAD_PARAMETERS = [
    ({"limit": 0}, "limit"),
    ({"limit": 51}, "limit"),
    ({"limit": "many"}, "limit"),
    ({"after": "yesterday"}, "after"),
    ({"after": "job_" + "0" * 32}, "after"),
    ({"state": "asleep"}, "state"),
    ({"label": "project"}, "label"),
    ({"label": "a:\0"}, "label"),
]


def test_a_bad_parameter_is_named(api, subtests):
    for params, parameter in BAD_PARAMETERS:
        with subtests.test(params=params):
            answer = api.get("/v1/jobs", params=params)
            assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, parameter)


def test_no_answer_reads_a_whole_report(api, stage):
    done = stage.succeeded({"plan.json": b"{}"})
    with said_to(api.app.state.resources.engine) as said:
        for path in (
            "",
            f"/{done}",
            f"/{done}/events",
            f"/{done}/artifacts",
            f"/{done}/artifacts/plan.json",
            f"/{done}/trace",
        ):
            assert api.get(f"/v1/jobs{path}").status_code == 200
        assert api.get("/v1/queue").status_code == 200
        assert api.post(f"/v1/jobs/{done}/cancel").status_code == 409
        assert api.post("/v1/jobs/cancel", json={"ids": [done]}).status_code == 200
        assert api.delete(f"/v1/jobs/{done}").status_code == 204
    assert [statement for statement in said if reads_report(statement)] == []


def test_a_job_shows_progress_error_and_report(api, stage, make_trial):
    progress = {"done": 2, "known": 9, "seconds": 1.0, "seconds_left": 3.5, "base_loss": 0.5, "min_loss": 0.4}
    progress |= {"operations": 900, "estimated_speedup": 1.1, "first_look": "40 rows"}
    progress |= {"step": None, "kept": None}
    earlier = {"pass_number": 1, "passes": 1, "order": "auto"}
    done = stage.running([make_trial(0)], progress | earlier | {"dimensions": {"layers": 2}})
    assert api.get(JOB.format(done)).json()["progress"] == progress
    stage.succeed(done, {})
    job = api.get(JOB.format(done)).json()
    told = job["report"]
    assert (job["state"], told["base"]["parameters"]) == ("succeeded", 10)
    assert (told["removed_count"], told["hard_attention_count"]) == (1, 2)
    assert job["report"]["estimated_speedup"] == 1.0
    failed = api.get(JOB.format(stage.failed())).json()
    assert failed["error"] == {"code": "invalid_data", "message": "no rows", "param": "validation", "retryable": False}
    assert failed["status_reason"] == "no rows"


def test_a_queued_job_is_cancelled_at_once_and_a_running_one_is_told(api, stage):
    queued = stage.queued()
    answer = api.post(JOB.format(queued) + "/cancel")
    assert (answer.status_code, answer.json()["state"]) == (202, "cancelled")
    running = stage.running()
    for _ in range(2):
        answer = api.post(JOB.format(running) + "/cancel")
        assert (answer.status_code, answer.json()["state"]) == (202, "cancelling")
    assert answer.json()["cancel_requested_at"] is not None
    assert answer.json()["finished_at"] is None


def test_a_failed_job_is_retried_under_its_id_with_an_empty_trace(api, stage, settings):
    failed = stage.failed()
    left_behind = settings.storage_dir / "jobs" / failed / "0"
    left_behind.parent.mkdir(parents=True)
    left_behind.write_bytes(b"half a model")
    answer = api.post(JOB.format(failed) + "/retry")
    job = answer.json()
    assert (answer.status_code, job["id"], job["state"], job["error"], job["attempt"]) == (
        202,
        failed,
        "queued",
        None,
        0,
    )
    assert api.get(JOB.format(failed) + "/trace").json()["data"] == []
    assert not left_behind.exists()


def test_a_deleted_job_is_gone_with_its_files(api, stage, settings):
    done = stage.succeeded({"plan.json": b"{}"})
    folder = settings.storage_dir / "jobs" / done
    assert folder.is_dir()
    answer = api.delete(JOB.format(done))
    assert (answer.status_code, answer.content) == (204, b"")
    assert not folder.exists()
    assert api.get(JOB.format(done)).status_code == 404


def test_what_the_state_does_not_allow_is_a_conflict(api, stage):
    running = stage.running()
    assert api.delete(JOB.format(running)).status_code == 409
    assert api.post(JOB.format(running) + "/retry").status_code == 409
    done = stage.succeeded({})
    for way in ("cancel", "retry"):
        answer = api.post(JOB.format(done) + f"/{way}")
        assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
        assert "succeeded" in answer.json()["detail"]


ROUTES = [
    ("GET", ""),
    ("DELETE", ""),
    ("POST", "/cancel"),
    ("POST", "/pause"),
    ("POST", "/resume"),
    ("POST", "/retry"),
    ("GET", "/deliveries"),
    ("GET", "/trace"),
    ("GET", "/events"),
    ("GET", "/artifacts"),
    ("GET", "/artifacts/plan.json"),
    ("HEAD", "/artifacts/plan.json"),
]


def test_a_job_is_there_for_its_team_alone(client, stage, crew, rivals, subtests):
    for method, path in ROUTES:
        done = stage.succeeded({"plan.json": b"{}"})
        address = f"/v1/jobs/{done}{path}"
        with subtests.test(method=method, path=path):
            for number in (done[:-1] + "x", "job_%00", "..%2f..", "%ff"):
                assert client.request(method, f"/v1/jobs/{number}{path}", headers=crew.headers).status_code == 404
            assert client.request(method, address, headers=rivals.headers).status_code == 404
            assert client.request(method, address).status_code == 401
            assert client.request(method, address, headers=crew.headers).status_code in (200, 204, 409)


def test_lists_and_queue_show_only_the_teams_own(api, stage, rivals):
    stage.queued()
    assert api.get("/v1/jobs", headers=rivals.headers).json()["data"] == []
    assert api.get("/v1/queue", headers=rivals.headers).json()["data"] == []
