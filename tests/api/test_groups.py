"""Groups: a grid becomes jobs, all or none, once however often it is sent; and their reports a table."""

from copy import deepcopy

import pytest
from scipy.stats import t

from store.repositories import claims, leases, moves
from store.repositories.teams import TeamLimits, set_limits
from store.session import session_scope
from store.states import JobState
from tests.statements import said_to

GRID = {
    "name": "does it hold?",
    "sets": [
        {
            "name": "rte",
            "checkpoints": [{"uri": "hf://acme/rte-s0"}, {"uri": "hf://acme/rte-s1"}, {"uri": "hf://acme/rte-s2"}],
            "validation": {"uri": "s3://acme/rte/dev.csv"},
            "test": {"uri": "s3://acme/rte/test.csv"},
        },
        {
            "name": "cola",
            "checkpoints": [{"uri": "https://acme.example/cola.zip"}],
            "validation": {"uri": "s3://acme/cola/dev.csv", "columns": {"text": "sentence"}},
        },
    ],
    "settings": [{"name": "paper", "preset": "paper"}, {"name": "confirm", "config": {"confirm": 0.5}}],
    "labels": {"project": "evidence"},
}


@pytest.fixture
def grid():
    return deepcopy(GRID)


def post(api, grid, **headers):
    return api.post("/v1/groups", json=grid, headers=headers)


def test_data_that_calibrates_goes_to_the_settings_that_fit(api, grid):
    texts = {"uri": "s3://acme/rte/texts.csv"}
    grid["sets"][0]["calibrate"] = texts
    grid["settings"].append({"name": "small", "preset": "smallest"})
    made = post(api, grid).json()
    found = {(cell["set"], cell["setting"], str(api.get(cell["url"]).json()["calibrate"])) for cell in made["cells"]}
    assert {each for each in found if each[2] != "None"} == {("rte", "small", str(texts))}
    grid["settings"].pop()
    refused = post(api, grid)
    assert (refused.status_code, pointers(refused)) == (422, ["#/sets/0/calibrate"])


def test_training_data_goes_to_the_settings_that_train(api, grid):
    grid["sets"] = grid["sets"][:1]
    grid["sets"][0]["train"] = {"uri": "s3://acme/rte/train.csv"}
    grid["settings"] += [
        {"name": "layers", "config": {"method": "layers", "drop": 1}},
        {"name": "polished", "preset": "paper", "finetune": {"epochs": 2}},
    ]

    def trained():
        jobs = {cell["setting"]: api.get(cell["url"]).json() for cell in post(api, grid).json()["cells"]}
        return {name: job["finetune"]["epochs"] for name, job in jobs.items() if job["train"] is not None}

    assert trained() == {"layers": 3, "polished": 2}
    del grid["settings"][-2:]
    assert set(trained()) == {setting["name"] for setting in grid["settings"]}
    del grid["sets"][0]["train"]
    grid["settings"][0]["finetune"] = {}
    refused = post(api, grid)
    assert refused.status_code == 422
    assert "no set has training data" in refused.text


def test_base_models_get_the_head_of_their_set_and_are_all_trained(api, grid):
    grid["sets"] = grid["sets"][:1]
    head = {"task": "classification", "labels": ["no", "yes"]}
    grid["sets"][0] |= {"train": {"uri": "s3://acme/rte/train.csv"}, "head": head}
    grid["settings"].append({"name": "layers", "config": {"method": "layers", "drop": 1}})
    jobs = [api.get(cell["url"]).json() for cell in post(api, grid).json()["cells"]]
    assert [job["head"] for job in jobs] == [head] * len(jobs)
    assert all(job["train"] is not None for job in jobs)
    del grid["sets"][0]["train"]
    refused = post(api, grid)
    assert (refused.status_code, pointers(refused)) == (422, ["#/sets/0/head"])


def test_a_string_is_short_for_a_reference(api, grid):
    whole = api.get(api.post("/v1/groups", json=grid).json()["cells"][0]["url"]).json()
    for data_set in grid["sets"]:
        data_set["checkpoints"] = [checkpoint["uri"] for checkpoint in data_set["checkpoints"]]
    grid["sets"][0]["validation"] = grid["sets"][0]["validation"]["uri"]
    grid["sets"][0]["test"] = grid["sets"][0]["test"]["uri"]
    short = api.get(api.post("/v1/groups", json=grid).json()["cells"][0]["url"]).json()
    for part in ("checkpoint", "validation", "test"):
        assert short[part] == whole[part]


def test_unknown_knobs_are_named_with_all_else_that_is_wrong(api, grid):
    grid["settings"][1] = {"name": "other", "config": {"speedup": 2}}
    answer = api.post("/v1/groups", json=grid | {"priority": "high", "labls": {}})
    assert pointers(answer) == ["#/priority", "#/labls", "#/settings/1/config"]
    assert "did you mean target_speedup?" in answer.json()["errors"][2]["detail"]


def pointers(answer):
    return [error["pointer"] for error in answer.json()["errors"]]


def report(loss: float, *, test: float | None, after: int) -> dict:
    """What a report says of a job that changed the validation and the held-out loss by so much."""
    changes = {"validation": loss} | ({} if test is None else {"test": test})
    comparison = {
        data: {"differences": {"loss": {"value": value, "interval": [value, value]}}, "mcnemar": None}
        for data, value in changes.items()
    }
    figures = {"validation": {"loss": 0.4}, "test": None, "parameters": 100, "bytes": 40, "latency_ms": 2.0}
    figures["encoder_parameters"] = 40
    return {
        "base": figures | {"operations": 900},
        "pruned": figures
        | {"operations": 450, "parameters": after, "encoder_parameters": after - 60, "latency_ms": 1.0},
        "one_position_ms": 1.5,
        "comparison": comparison | {"confirming": None},
        "estimated_speedup": 2.0,
        "finding": {"verdict": "gain" if (test or 0) < 0 else "no_reliable_gain"},
        "removed": [],
    }


def succeed(sessions, job_id: str, told: dict) -> None:
    """Let the next job in line, which this is, succeed with a report."""
    with session_scope(sessions) as session:
        claimed = claims.claim_next(session, "worker-1", 60)
        assert claimed.id == job_id
        for state in (JobState.VALIDATING, JobState.RUNNING, JobState.PACKAGING):
            leases.set_state(session, job_id, claimed.fence, state)
        leases.finish_succeeded(session, job_id, moves.lock_job(session, job_id).fence, told, [])


def test_each_checkpoint_is_pruned_with_each_setting_and_seed(api, grid):
    made = post(api, grid | {"seeds": [3, 5]})
    group = made.json()
    assert (made.status_code, made.headers["Location"]) == (202, f"/v1/groups/{group['id']}")
    assert (group["counts"], group["has_ended"]) == ({"queued": 16}, False)
    places = [(one["set"], one["checkpoint"], one["seed"], one["setting"]) for one in group["cells"]]
    wanted = [
        (name, checkpoint, seed, setting)
        for name, checkpoint in (("rte", 0), ("rte", 1), ("rte", 2), ("cola", 0))
        for seed in (3, 5)
        for setting in ("paper", "confirm")
    ]
    assert places == wanted
    job = api.get(group["cells"][-1]["url"]).json()
    assert (job["group"], job["name"]) == (group["id"], "does it hold?: cola 0, seed 5, confirm")
    assert (job["checkpoint"]["uri"], job["config"]["confirm"], job["config"]["seed"]) == (
        "https://acme.example/cola.zip",
        0.5,
        5,
    )
    assert (job["test"], job["labels"], job["forms"]) == (None, {"project": "evidence"}, ["compact"])
    assert job["validation"]["columns"]["text"] == "sentence"
    assert api.get(f"/v1/groups/{group['id']}").json() == group


@pytest.mark.parametrize("order", ["auto", "search"])
def test_a_large_group_takes_as_many_statements_as_a_small_one(api, grid, sessions, crew, order):
    with session_scope(sessions) as session:
        set_limits(session, crew.id, TeamLimits(queued=1000, stored_bytes=10**9))
    grid["settings"] = [{"name": "one order", "config": {"order": order}}]
    upload = {"uri": f"upload:{api.post('/v1/uploads', files={'file': ('dev.jsonl', b'{}')}).json()['id']}"}
    for one in grid["sets"]:
        one["validation"] = upload
    post(api, grid)  # whatever is made once only is made now
    counted = []
    for seeds in ([1], list(range(1, 26))):
        with said_to(api.app.state.resources.engine) as said:
            answer = post(api, grid | {"seeds": seeds})
        assert (answer.status_code, len(answer.json()["cells"])) == (202, 4 * len(seeds))
        counted.append(len(said))
    assert counted[0] == counted[1]


def test_the_limits_are_looked_at_once_for_all_jobs_of_a_group_that_is_retried(api, grid, sessions, crew):
    with session_scope(sessions) as session:
        set_limits(session, crew.id, TeamLimits(queued=50, stored_bytes=10**9))
    counted = []
    for seeds in ([1], [1, 2, 3]):
        path = f"/v1/groups/{post(api, grid | {'seeds': seeds}).json()['id']}"
        api.post(f"{path}/cancel")
        with said_to(api.app.state.resources.engine) as said:
            assert api.post(f"{path}/retry").json()["counts"] == {"queued": 8 * len(seeds)}
        counted.append(sum("sum(" in statement for statement in said))
    assert counted[0] == counted[1] > 0


def test_a_setting_may_be_a_goal(api, grid):
    settings = [{"name": "small", "goal": "within-points=2"}, {"name": "fast", "goal": "speedup=3"}]
    group = post(api, grid | {"settings": settings}).json()
    found = {}
    for cell in group["cells"]:
        found[cell["setting"]] = api.get(cell["url"]).json()
    assert (found["small"]["preset"], found["small"]["config"]["within_points"]) == ("smallest", 2)
    assert (found["fast"]["preset"], found["fast"]["config"]["target_speedup"]) == ("smallest", 3)


@pytest.mark.parametrize(
    "setting",
    [
        {"goal": "speedup"},
        {"goal": "faster"},
        {"goal": "no-worse", "preset": "paper"},
        {"name": "paper", "goal": "no-worse"},
    ],
)
def test_a_goal_that_is_none_or_not_alone_is_refused(api, grid, setting):
    answer = post(api, grid | {"settings": [{"name": "a"} | setting]})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "#/settings/0")


def test_a_group_that_is_sent_again_is_made_once(api, grid):
    first = post(api, grid, **{"Idempotency-Key": "once"})
    again = post(api, grid, **{"Idempotency-Key": "once"})
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == first.json()
    assert len(api.get("/v1/jobs", params={"limit": 50}).json()["data"]) == 8
    other = post(api, grid | {"name": "other"}, **{"Idempotency-Key": "once"})
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert post(api, grid).json()["id"] != first.json()["id"]


@pytest.mark.parametrize(
    ("place", "value", "pointer"),
    [
        (("sets", 0, "checkpoints", 1, "uri"), "ftp://acme/model", "#/sets/0/checkpoints/1/uri"),
        (("sets", 1, "validation", "uri"), "ftp://acme/dev.csv", "#/sets/1/validation/uri"),
        (("sets", 0, "test", "uri"), "upload:upl_0199d1c2a4b37c5f8e21d3b4a5968778", "#/sets/0/test/uri"),
        (("settings", 1, "config", "confirm"), 7, "#/settings/1/config"),
        (("settings", 0), {"name": "confirm"}, "#"),
        (("sets", 1, "name"), "rte", "#"),
        (("seeds",), [1, 1], "#"),
        (("settings", 0, "name"), "", "#/settings/0/name"),
        (("settings", 0, "preset"), "robust", "#/settings/0"),
        (("settings", 1, "name"), "Published", "#/settings/1"),
        (("seeds",), list(range(30)), "#"),
    ],
)
def test_what_is_wrong_is_named_in_the_groups_own_body_and_nothing_is_made(api, grid, place, value, pointer):
    at = grid
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = value
    refused = post(api, grid)
    assert (refused.status_code, pointers(refused)) == (422, [pointer])
    assert "Value error" not in refused.json()["detail"]
    assert api.get("/v1/groups").json()["data"] == api.get("/v1/jobs").json()["data"] == []


def test_a_setting_named_like_a_preset_uses_it(api, grid):
    del grid["settings"][0]["preset"]
    refused = post(api, grid)
    assert refused.status_code == 422
    assert (
        "setting 'paper' is named like a preset and would run as 'robust'; give it preset 'paper'"
        in refused.json()["detail"]
    )


def test_the_table_says_what_each_setting_is(api, grid):
    rows = post(api, grid | {"seeds": [0, 7]}).json()["rows"]
    assert [(row["setting"], row["preset"], row["config"]) for row in rows] == [
        ("paper", "paper", {}),
        ("confirm", "robust", {"confirm": 0.5}),
    ] * 2


def test_a_seed_stands_in_one_place(api, grid):
    grid["settings"][0]["config"] = {"seed": 4}
    assert post(api, grid).status_code == 202
    refused = post(api, grid | {"seeds": [1]})
    assert (refused.status_code, pointers(refused)) == (422, ["#"])


def test_a_token_goes_to_the_jobs_that_read_from_the_hub(api, grid, sessions):
    from store.repositories.jobs import hub_token_of

    group = post(api, grid | {"hub_token": "hf_canary"}).json()
    with session_scope(sessions) as session:
        has_token = [hub_token_of(session, one["job"]) is not None for one in group["cells"]]
    assert has_token == [one["set"] == "rte" for one in group["cells"]]
    refused = post(api, grid | {"hub_token": "hf_canary", "sets": grid["sets"][1:]})
    assert (refused.status_code, pointers(refused)) == (422, ["#/hub_token"])


def test_a_group_that_does_not_fit_is_refused_whole(api, grid, sessions, crew, body):
    with session_scope(sessions) as session:
        set_limits(session, crew.id, TeamLimits(queued=8))
    waiting = api.post("/v1/jobs", json=body).json()
    problem = post(api, grid).json()
    assert (problem["status"], problem["used"], problem["limit"]) == (429, 1, 8)
    assert "1 queued jobs and may have 8, and the group has 8" in problem["detail"]
    assert [job["id"] for job in api.get("/v1/jobs").json()["data"]] == [waiting["id"]]
    api.post(f"/v1/jobs/{waiting['id']}/cancel")
    assert post(api, grid).status_code == 202


def test_the_table_has_means_spreads_and_intervals(api, grid, sessions):
    group = post(api, grid).json()
    losses = [(-0.02, -0.01), (-0.03, 0.01), (-0.07, -0.03)]
    for at, (cell, after) in enumerate(zip(group["cells"], [90, 95, 80, 100, 85, 100, 70, 100], strict=True)):
        validation, test = losses[cell["checkpoint"]]
        told = report(validation, test=test if cell["set"] == "rte" else None, after=after)
        if cell["checkpoint"]:
            told["target"] = {"reached": cell["checkpoint"] == 1, "sentence": "So it was."}
        succeed(sessions, cell["job"], told)
        standing = api.get(f"/v1/groups/{group['id']}").json()
        assert (standing["counts"]["succeeded"], standing["has_ended"]) == (at + 1, at == 7)
    rows = {(row["set"], row["setting"]): row for row in standing["rows"]}
    assert list(rows) == [("rte", "paper"), ("rte", "confirm"), ("cola", "paper"), ("cola", "confirm")]

    row = rows["rte", "paper"]
    assert (row["jobs"], row["succeeded"], row["verdicts"]) == (3, 3, {"gain": 2, "no_reliable_gain": 1})
    assert [one["missed"] for one in standing["rows"]] == [1, 1, 0, 0]  # the third checkpoint of the first set
    held_out = row["changes"]["test"]["loss"]
    assert held_out["mean"] == pytest.approx(-0.01)
    assert held_out["deviation"] == pytest.approx(0.02)
    assert held_out["interval"] == pytest.approx(t.interval(0.95, 2, loc=-0.01, scale=0.02 / 3**0.5))
    assert row["removed"]["mean"] == pytest.approx((0.1 + 0.2 + 0.15) / 3)
    assert row["encoder_removed"]["mean"] == pytest.approx((10 + 20 + 15) / 3 / 40)
    assert (row["operations"]["mean"], row["latency"]["mean"], row["latency_by_pruning"]["mean"]) == (2.0, 2.0, 1.5)

    single = rows["cola", "paper"]
    assert list(single["changes"]) == ["validation"]
    assert single["removed"] == {"count": 1, "mean": pytest.approx(0.3), "deviation": None, "interval": None}


def test_what_has_not_succeeded_has_no_figures(api, grid):
    row = post(api, grid).json()["rows"][0]
    assert (row["jobs"], row["succeeded"], row["changes"], row["removed"], row["verdicts"]) == (3, 0, {}, None, {})


def test_a_group_is_cancelled_retried_and_deleted_with_its_jobs(api, grid, stage, sessions):
    group = post(api, grid).json()
    path = f"/v1/groups/{group['id']}"
    succeed(sessions, group["cells"][0]["job"], report(-0.1, test=-0.1, after=90))
    assert api.delete(path).json()["code"] == "wrong_state"
    assert api.post(f"{path}/cancel").json()["counts"] == {"succeeded": 1, "cancelled": 7}
    assert api.post(f"{path}/cancel").json()["has_ended"]
    assert api.post(f"{path}/retry").json()["counts"] == {"succeeded": 1, "queued": 7}
    api.post(f"{path}/cancel")
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404
    assert api.get("/v1/jobs").json()["data"] == []


def test_groups_are_listed_newest_first_and_page_by_page(api, grid):
    ids = [post(api, grid | {"name": f"{number}"}).json()["id"] for number in range(3)][::-1]
    first = api.get("/v1/groups", params={"limit": 2}).json()
    assert ([group["id"] for group in first["data"]], first["has_more"]) == (ids[:2], True)
    for after in (first["next"], ids[1]):
        rest = api.get("/v1/groups", params={"after": after}).json()
        assert ([group["id"] for group in rest["data"]], rest["has_more"]) == (ids[2:], False)
    assert api.get("/v1/groups", params={"after": "grp_" + 32 * "0"}).status_code == 422


def test_another_teams_group_is_not_there(api, grid, client, rivals):
    path = f"/v1/groups/{post(api, grid).json()['id']}"
    client.headers.update(rivals.headers)
    assert [client.get(path).status_code, client.delete(path).status_code] == [404, 404]
    assert client.post(f"{path}/cancel").json()["code"] == "group_not_found"


def test_deleting_the_jobs_of_a_group_one_by_one_leaves_a_table_of_the_others(api, grid):
    group = post(api, grid | {"sets": grid["sets"][1:]}).json()
    api.post(f"/v1/groups/{group['id']}/cancel")
    assert api.delete(group["cells"][0]["url"]).status_code == 204
    left = api.get(f"/v1/groups/{group['id']}").json()
    assert [(row["setting"], row["jobs"]) for row in left["rows"]] == [("confirm", 1)]
