"""The commands that speak with the service, as people and scripts meet them."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.services.webhooks import create_secret
from axformer.client import Client
from axformer.client.address import login_file
from axformer.plan.trial import Trial
from axformer.wire.analysis import ANALYSIS_FORMAT, Reports
from axformer.wire.devices import Device
from axformer.wire.states import JobKind
from store.repositories.audit import Operator
from store.repositories.jobs import hub_token_of
from store.repositories.workers import note_worker
from store.session import Sessions, session_scope
from store.settings import Settings
from store.signing import open_vault
from tests.api.conftest import Crew, Stage, trial
from tests.client.commands import answered, logged_in, ran, run
from tests.client.conftest import FILES, beside, play_worker
from tests.client.unreliable import Fault, Unreliable

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")
DEADLINE = 120.0


def test_login_keeps_a_key_that_works_and_no_other(live: str, crew: Crew) -> None:
    refused = run("login", live, typed="axk_wrong\n")
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    assert refused.stderr.startswith("failed: the key is unknown")
    assert not login_file().exists()
    accepted = run("login", live, typed=f"{crew.key}\n")
    assert accepted.exit_code == 0
    assert "You are crew at" in accepted.stdout
    assert crew.key not in accepted.output
    assert stat.S_IMODE(login_file().stat().st_mode) == 0o600
    assert "There are no jobs yet" in ran("jobs")


def test_without_an_address_a_command_says_what_to_do() -> None:
    result = run("jobs")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: it is not known where the service is; give AXFORMER_URL")
    assert result.stderr.count("\n") == 1


@logged_in
def test_submit_sends_what_lies_here_and_prints_the_id_alone(api: Client, tmp_path: Path) -> None:
    home = tmp_path / "bert"
    home.mkdir()
    (home / "config.json").write_text("{}")
    (home / "model.safetensors").write_bytes(b"weights")
    data = tmp_path / "dev.jsonl"
    data.write_text('{"text": "good", "label": 1}\n')
    printed = ran(
        *("submit", home, "--data", data, "--test", data, "--set", "refine_margin=1.5", "--label", "project=reviews"),
        *("--columns", "text=sentence", "--priority", "3", "--device", "cpu", "--forms", "compact,onnx"),
        *("--train", "s3://acme/train.csv", "--finetune", "epochs=2", "--preset", "published"),
    )
    job = api.job(printed.strip())
    assert (job.name, job.preset, job.priority, job.device) == ("bert", "published", 3, "cpu")
    assert job.config["refine_margin"] == 1.5
    assert job.forms == ["compact", "onnx"]
    assert job.labels == {"project": "reviews"}
    assert job.test is not None
    assert job.test["uri"] == job.validation["uri"]
    assert job.validation["columns"]["text"] == "sentence"
    assert job.finetune is not None
    assert job.finetune["epochs"] == 2
    assert answered("submit", "hf://a/b", "--data", "s3://acme/b.csv", "--name", "named")["name"] == "named"
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"text": "good"}\n')
    small = answered(
        *("submit", "hf://a/b", "--data", "s3://acme/b.csv", "--preset", "smallest", "--calibrate", texts, "--json")
    )
    assert small["calibrate"]["uri"].startswith("upload:")
    assert small["calibrate"]["uri"] in ran("show", small["id"])


@logged_in
def test_submit_says_who_is_told(api: Client, crew: Crew, sessions: Sessions, settings: Settings) -> None:
    with session_scope(sessions) as session:
        create_secret(session, settings, Operator(crew.id))
    posted = ("submit", "hf://a/b", "--data", "s3://acme/b.csv", "--webhook", "https://ci.acme.example/")
    ends = ["job.succeeded", "job.failed", "job.cancelled"]
    assert answered(*posted)["webhook"] == {"url": posted[-1], "events": ends}
    chosen = answered(*posted, "--webhook-event", "job.running", "--webhook-event", "job.failed")
    assert chosen["webhook"]["events"] == ["job.running", "job.failed"]


@logged_in
@pytest.mark.parametrize("way", ["pipe", "environment"])
def test_a_hub_token_comes_from_no_argument(
    way: str, sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["submit", "hf://a/private", "--data", "s3://acme/b.csv", "--json"]
    if way == "pipe":
        result = run(*arguments, "--hub-token", typed="hf_token\n")
    else:
        monkeypatch.setenv("AXFORMER_HUB_TOKEN", "hf_token")
        ran(
            "submit", "s3://acme/b", "--data", "s3://acme/b.csv"
        )  # nothing of it is read from the hub, and the token stays
        result = run(*arguments)
    with session_scope(sessions) as session:
        assert open_vault(settings).unlock(hub_token_of(session, json.loads(result.stdout)["id"])) == "hf_token"
    assert "hf_token" not in result.output


@logged_in
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["submit", "hf://a/b", "--data", "s3://acme/b.csv", "--webhook-event", "job.failed"],
            "give --webhook too",
        ),
        (["submit", "nowhere", "--data", "s3://acme/b.csv"], "'nowhere' does not exist here"),
        (["submit", "hf://a/b", "--data", "nowhere.csv"], "'nowhere.csv' does not exist here"),
        (["submit", "hf://a/b", "--data", "s3://acme/b.csv", "--set", "margin=2"], "knob 'margin' is unknown"),
        (["submit", "hf://a/b", "--data", "s3://acme/b.csv", "--label", "x"], "--label 'x' is not key=value"),
        (["submit", "hf://a/b", "--data", "s3://acme/b.csv", "--forms", "tar"], "--forms 'tar' is not a form"),
        (["submit", "hf://a/b", "--data", "s3://acme/b.csv", "--finetune", "epochs=2"], "and train on what"),
        (
            ["submit", "hf://a/b", "--data", "s3://acme/b.csv", "--calibrate", "s3://acme/t.csv"],
            "calibrate is data to fit weights on, and method=axformer fits none without repair=refit; leave it out",
        ),
        (["upload", "nowhere"], "'nowhere' does not exist"),
        (["compare", "job_a"], "compare takes 2 to 6 jobs or results, not 1"),
        (["trace", "job_a", "--output", "nowhere/x.csv"], None),
        (["show", "job_a"], None),
        (["watch", "job_a"], None),
        (["download", "job_a"], None),
        (["cancel", "job_a"], None),
    ],
)
def test_an_error_is_one_line_wrong_use_is_two_and_a_refusal_one(arguments: list[str], message: str | None) -> None:
    result = run(*arguments)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    if message is None:
        assert result.exit_code == 1
        assert result.stderr == "failed: your team has no job 'job_a'; axformer jobs lists those there are\n"
    else:
        assert result.exit_code == 2
        assert result.stderr.startswith("error: ")
        assert message in result.stderr
    assert list(Path().iterdir()) == []


@logged_in
def test_watch_shows_trials_as_prune_does_and_ends_well_with_success(stage: Stage) -> None:
    job_id = stage.queued()
    with beside(lambda: play_worker(stage, job_id)):
        printed = ran("watch", job_id)
    lines = printed.splitlines()
    # How far the worker is by then is chance; at which place a job waits is not told where it begins at that very moment.
    assert lines[0].startswith((f"{job_id} is queued", f"{job_id} is running", "trial 0"))
    shown = [line for line in lines if " loss" in line and " min=" in line]
    assert [line.split()[1:4] for line in shown] == [
        ["0", "base", "base"],
        *([str(seq), f"layer.{seq}.ffn", "reject"] for seq in range(1, 5)),
    ]
    assert lines.index(shown[-1]) < lines.index(f"{job_id} has succeeded")
    assert "loss>=" in shown[1]
    assert "Before and after" in printed
    assert f"axformer download {job_id}" in lines[-1]


@logged_in
def test_a_job_is_known_by_its_name_a_part_of_its_id_and_as_the_last(stage: Stage, api: Client) -> None:
    def posted(name: str) -> str:
        return api.submit(name, checkpoint="hf://a/b", validation="s3://acme/b.csv").id

    first, second, last = posted("nightly"), posted("twice"), posted("twice")
    known = {
        "nightly": first,
        first[-8:]: first,
        first: first,
        second.removeprefix("job_"): second,
        "-": last,
        "last": last,
    }
    for text, job_id in known.items():
        assert answered("show", text)["id"] == job_id
    for text in ("twice", first[:8]):
        refused = run("show", text)
        assert (refused.exit_code, "give more of the id" in refused.stderr) == (1, True), refused.stderr
    assert f"{second} (twice)" in run("show", "twice").stderr
    assert ran("cancel", "nightly") == f"{first} is cancelled\n"
    Path("here").mkdir()
    assert "'here' lies here and is no job; axformer path here shows" in run("show", "here").stderr
    assert (
        "'missing/here' does not exist; give the directory that axformer prune wrote"
        in run("path", "missing/here").stderr
    )


def test_without_a_service_a_directory_that_is_not_there_is_named() -> None:
    for command in (["path", "nowhere"], ["compare", "nowhere", "nobody"]):
        refused = run(*command)
        assert refused.stderr.startswith("error: 'nowhere' is no directory here, and of jobs it is not known where")


@logged_in
def test_show_names_uploads_by_their_files(api: Client, tmp_path: Path) -> None:
    data = tmp_path / "dev.jsonl"
    data.write_text('{"text": "good", "label": 1}\n')
    job_id = ran("submit", "hf://acme/bert", "--data", data, "--goal", "speedup=2", "--set", "seed=3").split()[0]
    upload = api.job(job_id).validation["uri"]
    shown = ran("show", job_id)
    assert f"dev.jsonl ({upload})" in shown
    assert "goal        speedup=2, seed=3" in shown
    assert "budgets" not in shown


@pytest.mark.parametrize("width", ["72", "80", "100", "109"])
@logged_in
def test_names_are_cut_and_not_broken(api: Client, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    name = "nightly reviews of the german shop, second try with all languages"
    job_id = api.submit(name, checkpoint="hf://a/b", validation="s3://acme/b.csv").id
    monkeypatch.setenv("COLUMNS", width)
    for command in ("jobs", "queue"):
        rows = [line for line in ran(command).splitlines() if job_id[-8:] in line]
        assert len(rows) == 1
        assert rows[0].split()[1][:3] == name[:3]


@logged_in
def test_jobs_say_their_kind(stage: Stage) -> None:
    done = stage.succeeded(FILES, [trial(0)])
    assert "kind" not in ran("jobs").split()
    export = stage.queued(kind=JobKind.EXPORT, exported_from=done, upto=0)
    assert [line.split()[-4] for line in ran("jobs").splitlines() if "job_" in line][:1] == ["export"]
    assert [job["id"] for job in answered("jobs", "--kind", "export")] == [export]
    assert "kind        export" in ran("show", export)


@logged_in
def test_an_analysis_is_posted_watched_and_shown(api: Client, stage: Stage, tmp_path: Path) -> None:
    data = tmp_path / "dev.jsonl"
    data.write_text('{"text": "good", "label": 1}\n')
    asked = ("hf://acme/bert", "--data", data, "--train", data, "--against", "hf://acme/base", "--report", "cka, drift")
    job_id = ran("submit-analysis", *asked, "--rows", 50, "--columns", "text=review").split()[0]
    job = api.job(job_id)
    assert (job.kind, job.against, job.state) == ("analysis", {"uri": "hf://acme/base"}, "queued")
    assert job.analysis is not None
    assert (job.analysis.reports, job.analysis.rows) == (["cka", "drift"], 50)
    assert job.train is not None
    assert job.train["uri"] == job.validation["uri"]  # sent once
    refused = run("submit-analysis", *asked[:3], "--report", "drift")
    assert (refused.exit_code, "give against too" in refused.stderr) == (1, True)
    stage.begin(job_id, progress={"done": 0, "known": 0, "seconds": 0.0})
    advice = {"sentence": "Layers [repeat].", "command": "axformer prune it"}
    made = {"format": ANALYSIS_FORMAT, "reports": dict.fromkeys(Reports.model_fields) | {"cka": {"advice": advice}}}
    stage.succeed(job_id, {"analysis.json": b"{}"}, **made)
    for printed in (ran("watch", job_id), ran("show", job_id)):
        assert "cka: Layers [repeat].\n  axformer prune it" in printed
        assert "trial" not in printed
    assert "1 report " in ran("jobs", "--kind", "analysis")
    assert ran("download", job_id, "--output", tmp_path / "got")
    assert (tmp_path / "got" / "analysis.json").read_bytes() == b"{}"


@logged_in
def test_no_trial_is_shown_after_the_pass_is_said_to_be_over(stage: Stage) -> None:
    job_id = stage.succeeded(FILES, [trial(seq) for seq in range(3)])
    said = [line for line in ran("watch", job_id).splitlines() if line.startswith(("trial", job_id))]
    assert [line.split()[0] for line in said] == ["trial", "trial", "trial", job_id]


@logged_in
def test_watch_as_json_is_a_line_each(stage: Stage) -> None:
    job_id = stage.succeeded(FILES, [trial(seq) for seq in range(3)])
    lines = [json.loads(line) for line in ran("watch", job_id, "--json").splitlines()]
    assert [Trial(**line["trial"]) for line in lines if "trial" in line] == [trial(seq) for seq in range(3)]
    assert lines[-1]["job"]["state"] == "succeeded"


@logged_in
def test_watch_of_a_job_that_fails_or_is_cancelled_fails(stage: Stage, api: Client) -> None:
    failed = run("watch", stage.failed())
    assert failed.exit_code == 1
    assert failed.stderr.endswith("has failed: no rows\n")
    cancelled = api.cancel(stage.queued()).id
    result = run("watch", cancelled)
    assert (result.exit_code, result.stderr) == (1, f"failed: job {cancelled} was cancelled\n")


@logged_in
def test_watch_goes_on_when_the_service_comes_back(
    stage: Stage, proxy: Unreliable, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = stage.succeeded(FILES, [trial(seq) for seq in range(3)])
    monkeypatch.setenv("AXFORMER_URL", proxy.url)
    proxy.faults = [Fault(status=503, headers={"Retry-After": "0"})] * 6
    printed = ran("watch", job_id)
    assert "503 Service Unavailable; try again later (trying again)" in printed
    assert "Before and after" in printed


@pytest.fixture
def watching(live: str, crew: Crew, stage: Stage) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    job_id = stage.running([trial(0)])
    environment = os.environ | {"AXFORMER_URL": live, "AXFORMER_API_KEY": crew.key}
    # A shell that runs the tests in the background lets them inherit that Ctrl-C is ignored.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code += "; from axformer.cli.main import app; app(prog_name='axformer')"
    command = [sys.executable, "-c", code, "watch", job_id]
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield job_id, process
    finally:
        process.kill()
        process.communicate()


def test_ctrl_c_leaves_the_job_running_and_says_so(watching: tuple[str, "subprocess.Popen[str]"], api: Client) -> None:
    job_id, process = watching
    assert process.stdout is not None
    assert "is running" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    assert f"the job goes on. Look at it again with: axformer watch {job_id}" in said
    assert "Traceback" not in said
    assert api.job(job_id).state == "running"


@logged_in
def test_jobs_are_listed_shown_and_compared(stage: Stage, api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    first = stage.succeeded(FILES, [trial(seq) for seq in range(3)])
    second = api.submit("wide", checkpoint="hf://a/b", validation="s3://acme/b.csv", config={"refine_margin": 9.5}).id
    monkeypatch.setenv("COLUMNS", "80")
    listed = ran("jobs", "--limit", "5")
    assert [line.split()[0] for line in listed.splitlines() if "wide" in line] == [second[-8:]]
    assert first[-8:] in listed
    assert all(len(line) <= 80 for line in (*listed.splitlines(), *ran("queue").splitlines()[:-1]))
    monkeypatch.delenv("COLUMNS")
    assert first in ran("jobs")
    assert [job["id"] for job in answered("jobs", "--state", "queued")] == [second]
    assert "There are no such jobs" in ran("jobs", "--label", "a=b")
    waiting = ran("queue")
    monkeypatch.setenv("COLUMNS", "200")
    assert "validation loss" in ran("show", first)
    assert "knobs       robust, refine_margin=9.5" in ran("show", second)
    assert answered("show", first)["report"]["removed_count"] == 1
    side_by_side = ran("compare", first, second)
    assert "refine_margin" in side_by_side
    assert "0.4000 → 0.4000" in side_by_side
    assert [job["id"] for job in answered("compare", second, first)] == [second, first]
    labelled = [stage.queued(name=name, labels={"sweep": "margins", "name": name}) for name in ("low", "high")]
    assert [job["id"] for job in answered("compare", "--label", "sweep=margins")] == labelled
    assert [job["id"] for job in answered("compare", first, "--label", "name=low")] == [first, labelled[0]]
    alone = run("compare", "--label", "name=low")
    assert (alone.exit_code, alone.stderr) == (2, "error: compare takes 2 to 6 jobs or results, not 1\n")
    assert second in waiting
    assert "1 job of all teams waiting" in waiting
    assert answered("queue")["data"][0]["id"] == second


@logged_in
def test_workers_are_listed_with_what_they_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert "No worker is alive" in ran("workers")
    with session_scope(stage.sessions) as session:
        for name, memory in (("worker-1", 80 * 10**9), ("small", None)):
            note_worker(session, name, name, "axformer", Device.GPU, memory=memory)
    job_id = stage.running(name="nightly")
    lines = [line.split() for line in ran("workers").splitlines()]
    assert ["small", "gpu", "–", "–", "–"] in lines
    assert any(line[:5] == ["worker-1", "gpu", "80.0", "GB", "nightly"] for line in lines)
    assert answered("workers")[0]["each"][1]["job_id"] == job_id


@logged_in
def test_a_memory_that_is_no_size_is_refused_before_anything_is_sent() -> None:
    refused = run("submit", "hf://a/b", "--data", "s3://acme/b.csv", "--device-memory", "much")
    assert refused.exit_code == 2
    assert "--device-memory=much is no size; give bytes, or a number with a unit as in 40GB" in refused.stderr


@logged_in
def test_jobs_are_steered_and_each_command_says_the_new_state(stage: Stage) -> None:
    job_id = stage.queued()
    for command, state in (("pause", "paused"), ("resume", "queued"), ("cancel", "cancelled"), ("retry", "queued")):
        assert ran(command, job_id) == f"{job_id} is {state}\n"
    assert answered("cancel", job_id)["state"] == "cancelled"
    refused = run("pause", job_id)
    assert refused.exit_code == 1
    assert "cannot become" in refused.stderr


@logged_in
def test_a_retry_that_will_fail_alike_says_so(stage: Stage) -> None:
    job_id = stage.failed()
    retried = run("retry", job_id)
    assert (retried.exit_code, retried.stdout) == (0, f"{job_id} is queued\n")
    assert retried.stderr == "note: it failed by what it was given (no rows); unless that changes it fails alike\n"


@logged_in
def test_a_trace_goes_to_a_file_or_on_to_other_programs(stage: Stage) -> None:
    job_id = stage.running([trial(seq) for seq in range(5)])
    assert [json.loads(line)["seq"] for line in ran("trace", job_id, "--json").splitlines()] == list(range(5))
    assert len(ran("trace", job_id, "--format", "csv").splitlines()) == 6
    assert ran("trace", job_id, "--format", "csv", "--output", "trace.csv") == ""
    assert len(Path("trace.csv").read_text().splitlines()) == 6


@logged_in
def test_files_are_downloaded(stage: Stage) -> None:
    job_id = stage.succeeded({**FILES, "trace.jsonl": b"", "plan.svg": b"<svg/>", "path.svg": b"<svg/>"}, [trial(0)])
    assert f"5 files, 1.0 MB, in {job_id}/" in ran("download", job_id)
    assert Path(job_id, "model", "model.safetensors").read_bytes() == FILES["model/model.safetensors"]
    assert answered("download", job_id, "--name", "plan.svg", "--output", "one") == ["one/plan.svg"]
    unfinished = run("download", stage.queued())
    assert (unfinished.exit_code, unfinished.stderr.count("\n")) == (1, 1)
    assert "is queued; wait with: axformer watch" in unfinished.stderr


@logged_in
def test_admins_keep_the_keys(stage: Stage, crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    made = run("keys", "create", "nightly", "--scope", "read", "--days", "30")
    key = made.stdout.strip()
    assert key.startswith("axk_")
    assert "shown only once" in made.stderr
    key_id = key.split("_")[1]
    assert "valid for 29 days" in ran("keys", "list")
    replaced = answered("keys", "rotate", key_id, "--grace-hours", "1")
    assert replaced["replaces"]["id"] == key_id
    assert ran("keys", "revoke", replaced["id"]) == f"{replaced['id']} is revoked\n"
    assert "revoked" in ran("keys", "list")
    monkeypatch.setenv("AXFORMER_API_KEY", key)
    refused = run("keys", "list")
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    with Client() as reader:
        assert reader.me().key.scopes == ["read"]


@logged_in
def test_who_changed_what_is_told(stage: Stage, api: Client) -> None:
    job_id = stage.queued()
    api.cancel(job_id)
    assert [entry.object_id for entry in api.audit() if entry.action == "job.cancel"] == [job_id]


def test_help_and_remote_commands_load_no_model_library() -> None:
    code = (
        "import sys\nfrom axformer.cli.main import app\ntry:\n    app(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    for arguments in (["--help"], ["submit", "--help"], ["jobs"], ["diff", "--help"]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
        loaded = set(done.stdout.splitlines()[-1].split())
        assert "axformer" in loaded
        assert not loaded & {"torch", "transformers", "safetensors", "pyarrow"}, arguments
