"""The commands for groups of jobs, and the client below them."""

import json
from pathlib import Path
from typing import Any

import pytest

from axformer.client import Client
from tests.api.conftest import Stage, trial
from tests.client.commands import answered, logged_in, ran, run

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")
GRID = """
name = "does it hold?"
seeds = [1, 2]
labels = {project = "evidence"}

[[sets]]
name = "rte"
checkpoints = ["hf://acme/rte-s0", "hf://acme/rte-s1"]
validation = "data/dev.csv"
test = "data/test.csv"
columns = {text = "sentence"}

[[settings]]
name = "usual"

[[settings]]
name = "confirm"
preset = "published"
config = {confirm = 0.5}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A grid elsewhere than where the command runs, with its data beside it."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "data").mkdir(parents=True)
    for name in ("dev", "test"):
        (elsewhere / "data" / f"{name}.csv").write_text(f"sentence,label\n{name},1\n")
    grid = elsewhere / "grid.toml"
    grid.write_text(GRID)
    return grid


def difference(value: float) -> dict[str, Any]:
    return {"value": value, "interval": [value, value]}


def succeed(stage: Stage, job_id: str, loss: float) -> None:
    """Let the next job in line, which this is, change the losses by so much."""
    stage.begin(job_id, [trial(0)])
    changed = {"differences": {"accuracy": difference(0.01), "loss": difference(loss)}, "mcnemar": None}
    stage.succeed(
        job_id,
        {"plan.json": b"{}"},
        comparison={"validation": changed, "test": changed, "confirming": None},
        finding={"verdict": "gain"},
    )


@logged_in
def test_a_grid_is_queued_and_its_files_are_sent_once(file: Path, api: Client) -> None:
    group = answered("grid", file)
    assert (group["name"], group["counts"]) == ("does it hold?", {"queued": 8})
    jobs = [api.job(cell["job"]) for cell in group["cells"]]
    assert {job.group for job in jobs} == {group["id"]}
    assert [(job.preset, job.config["confirm"], job.config["seed"]) for job in jobs[:4]] == [
        ("robust", 0.0, 1),
        ("published", 0.5, 1),
        ("robust", 0.0, 2),
        ("published", 0.5, 2),
    ]
    assert [job.checkpoint["uri"] for job in jobs] == 4 * ["hf://acme/rte-s0"] + 4 * ["hf://acme/rte-s1"]
    sent = {(job.validation["uri"], (job.test or {})["uri"]) for job in jobs}
    assert len(sent) == 1
    assert all(uri.startswith("upload:") for uri in sent.pop())
    assert all(job.validation["columns"]["text"] == "sentence" for job in jobs)
    assert jobs[0].labels == {"project": "evidence"}


@logged_in
def test_a_json_file_does_as_well_and_the_id_alone_is_printed(tmp_path: Path, api: Client) -> None:
    (tmp_path / "texts.jsonl").write_text('{"text": "good"}\n')
    sets = [{"name": "a", "checkpoints": ["hf://acme/a"], "validation": "s3://acme/a.csv", "calibrate": "texts.jsonl"}]
    path = tmp_path / "grid.json"
    path.write_text(json.dumps({"name": "small", "sets": sets, "settings": [{"name": "small", "preset": "smallest"}]}))
    printed = ran("grid", path)
    assert printed == f"{answered('groups')[0]['id']}\n"
    (cell,) = api.group(printed.strip()).cells
    assert (api.job(cell.job).calibrate or {})["uri"].startswith("upload:")
    assert "small" in ran("groups")


@logged_in
def test_base_models_of_a_grid_get_a_head(tmp_path: Path, api: Client) -> None:
    data = {"validation": "s3://acme/a.csv", "train": "s3://acme/train.csv", "head": "classification=no,yes"}
    sets = [{"name": "a", "checkpoints": ["hf://acme/base"], **data}]
    path = tmp_path / "grid.json"
    path.write_text(json.dumps({"name": "bases", "sets": sets, "settings": [{"name": "all"}]}))
    (cell,) = api.group(ran("grid", path).strip()).cells
    assert api.job(cell.job).head == {"task": "classification", "labels": ["no", "yes"]}


@logged_in
def test_a_group_is_shown_as_a_table(file: Path, stage: Stage) -> None:
    group = answered("grid", file)
    assert "rte, usual (robust): 0 of 4\n" in ran("group", group["id"])
    assert "rte, confirm (published, confirm=0.5): 0 of 4\n" in ran("group", group["id"])
    for cell, loss in zip(group["cells"], (-0.01, 0.02, -0.02, 0.02, -0.03, 0.02, -0.02, 0.02), strict=True):
        succeed(stage, cell["job"], loss)
    printed = ran("group", group["id"], "--watch")
    assert printed.startswith("does it hold?: 8 succeeded\n")
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    at = lines.index("rte, usual (robust): 4 of 4, judged 4 better")
    assert lines[at + 1 : at + 7] == [
        "mean deviation 95 % interval",
        "change of held-out loss -0.0200 0.0082 -0.0330 to -0.0070",
        "change of held-out accuracy +0.0100 0.0000 +0.0100 to +0.0100",
        "parameters removed 0.0% 0.0% 0.0% to 0.0%",
        "fewer operations 1.00x 0.00x 1.00x to 1.00x",
        "faster forward pass 1.00x 0.00x 1.00x to 1.00x",
    ]
    assert all(len(line) <= 80 for line in printed.splitlines())
    assert answered("group", group["id"], "--watch")["has_ended"]
    ran("group", group["id"], "--plot", str(file.parent / "pictures"))
    assert "confirm, confirm 1.00" in (file.parent / "pictures" / "rte.svg").read_text(encoding="utf-8")


@logged_in
def test_a_group_is_cancelled_and_retried_as_a_job_is(file: Path) -> None:
    group = answered("grid", file)["id"]
    assert ran("cancel", group) == f"{group}: 8 cancelled\n"
    assert ran("retry", group) == f"{group}: 8 queued\n"


@logged_in
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds = [1, 2]", "seed = 1", "seed: extra inputs are not permitted"),
        ("[[sets]]", "[sets]", "sets: input should be a valid list"),
        ('checkpoints = ["hf://acme/rte-s0", "hf://acme/rte-s1"]', "", "sets.0.checkpoints: field required"),
        ("confirm = 0.5", "confirm = 7", "knob confirm=7"),
        ("data/test.csv", "data/none.csv", "none.csv' does not exist here"),
        ('name = "usual"', 'name = "paper"', "setting 'paper' is named like a preset and would run as 'robust'"),
        ("[[sets]]", '[[sets]]\nhead = "regression=no,yes"', "task regression has no classes"),
        ("[[settings]]", "[[settings", "cannot be read as .toml or .json"),
    ],
)
def test_what_is_wrong_in_a_grid_file_is_one_line_and_nothing_is_queued(
    file: Path, old: str, new: str, message: str
) -> None:
    file.write_text(GRID.replace(old, new, 1))
    result = run("grid", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert answered("groups") == []


@logged_in
def test_a_client_deletes_a_group_with_its_jobs(api: Client) -> None:
    sets = [{"name": "a", "checkpoints": ["hf://acme/a"], "validation": "s3://acme/a.csv"}]
    group = api.submit_group(
        "small", sets=sets, settings=[{"name": "paper", "preset": "paper"}], idempotency_key="once"
    )
    assert (
        api.submit_group("small", sets=sets, settings=[{"name": "paper", "preset": "paper"}], idempotency_key="once").id
        == group.id
    )
    assert api.cancel_group(group.id).has_ended
    assert api.wait_for_group(group.id).counts == {"cancelled": 1}
    api.delete_group(group.id)
    assert list(api.groups()) == []
    assert list(api.jobs()) == []
