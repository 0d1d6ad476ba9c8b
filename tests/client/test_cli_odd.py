"""Names and places that nobody thought of: printed as they are, or refused in one line."""

import os
from pathlib import Path

import pytest

from axformer.cli.failing import failing
from axformer.client import Client
from tests.api.conftest import Crew, Stage, trial
from tests.client.commands import answered, logged_in, ran, run
from tests.client.conftest import FILES

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")
NAMES = ["reviews [v2]", "a [/b] c", "[red]x[/red]", r"\[bold]"]


@pytest.fixture
def job_id(stage: Stage) -> str:
    """A job that has succeeded."""
    made = stage.running([trial(0)])
    stage.succeed(made, FILES)
    return made


@logged_in
@pytest.mark.parametrize("name", NAMES)
def test_names_are_printed_as_they_are(stage: Stage, name: str) -> None:
    one, other = (stage.queued(name=name, labels={"for": name}) for _ in range(2))
    ran("keys", "create", name)
    for arguments in (["jobs"], ["show", one], ["queue"], ["compare", one, other], ["keys", "list"]):
        assert name in ran(*arguments), arguments


@logged_in
@pytest.mark.parametrize("place", ["file", "file/below", "missing/directory"])
def test_files_that_cannot_be_written_are_an_error_of_one_line(job_id: str, place: str) -> None:
    Path("file").write_text("taken")
    Path("missing").symlink_to("/proc")
    result = run("download", job_id, "--output", place)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.exception
    assert result.stderr.startswith(f"error: '{place}")
    assert Path("file").read_text() == "taken"


@logged_in
def test_a_directory_in_the_place_of_a_file_is_an_error_of_one_line(job_id: str) -> None:
    Path("out/trace.jsonl").mkdir(parents=True)
    result = run("download", job_id, "--output", "out")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.exception
    assert "out/trace.jsonl" in result.stderr


def test_a_login_that_cannot_be_kept_is_an_error_of_one_line(
    live: str, crew: Crew, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "taken"))
    result = run("login", live, typed=f"{crew.key}\n")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.exception
    assert "taken" in result.stderr
    assert crew.key not in result.output


@pytest.mark.parametrize("key", ["axk_\u201cquoted\u201d", "axk_a\u200bb", "two words", "axk_\x01"])
def test_a_key_that_no_header_takes_is_refused_at_once(live: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = run("login", live, typed=f"{key}\n")
    monkeypatch.setenv("AXFORMER_URL", live)
    monkeypatch.setenv("AXFORMER_API_KEY", key)
    for result in (typed, run("jobs")):
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.exception
        assert "copy it again" in result.stderr
        assert key not in result.output


@logged_in
@pytest.mark.parametrize(
    "arguments",
    [
        ("keys", "create", "nightly", "--days", "999999999"),
        ("keys", "create", "nightly", "--days", "3000000"),
        ("jobs", "--limit", str(10**23)),
        ("keys", "rotate", "abc", "--grace-hours", "nan"),
        ("keys", "rotate", "abc", "--grace-hours", "inf"),
    ],
)
def test_a_number_beyond_all_bounds_is_refused(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, SystemExit), "no error of Python's"
    assert result.exit_code in (1, 2)
    assert arguments[-2].strip("-").replace("-", "_") in result.stderr.replace("-", "_")


def test_a_reader_that_leaves_is_no_error_of_a_file() -> None:
    with pytest.raises(BrokenPipeError), failing():
        raise BrokenPipeError(32, "Broken pipe")


@logged_in
@pytest.mark.parametrize("command", ["submit", "submit-analysis"])
@pytest.mark.parametrize(
    "query", ["?X-Amz-Credential=ID/eu/s3/request&X-Amz-Signature=canary", "?sig=canary" + "x" * 300]
)
def test_the_signature_of_an_address_is_no_part_of_a_job_s_name(command: str, query: str) -> None:
    made = answered(
        command, f"https://files.example/a/bert.tar.gz{query}", "--data", f"https://files.example/dev.csv{query}"
    )
    assert made["name"] == "bert.tar.gz"
    assert "canary" not in ran("show", made["id"])


@logged_in
def test_files_whose_names_are_no_utf_8_are_sent(api: Client) -> None:
    data, home = Path(os.fsdecode(b"d\xe4ten.jsonl")), Path(os.fsdecode(b"gr\xfcn"))
    data.write_text('{"text": "good", "label": 1}\n')
    home.mkdir()
    (home / "config.json").write_text("{}")
    (home / "model.safetensors").write_bytes(b"weights")
    assert ran("upload", data).startswith("upload:")
    assert api.job(run("submit", home, "--data", data).stdout.strip()).name == "gr?n"
