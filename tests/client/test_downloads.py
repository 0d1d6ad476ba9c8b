"""Downloads: whole or not there, and nothing twice that has arrived."""

from pathlib import Path

import pytest

from axformer.client import Client, NotFoundError, TransferError
from tests.api.conftest import Stage
from tests.client.conftest import FILES
from tests.client.unreliable import Fault, Unreliable

WEIGHTS = "model/model.safetensors"
SIZE = len(FILES[WEIGHTS])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty directory to download into."""
    made = tmp_path / "place"
    made.mkdir()
    return made


def files_in(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def test_all_files_come_but_the_archive_of_them_all(api: Client, stage: Stage, place: Path) -> None:
    job_id, heard = stage.succeeded(FILES), list[int]()
    paths = api.download(job_id, place / "result", on_progress=heard.append)
    expected = {name: content for name, content in FILES.items() if name != "artifact.tar.gz"}
    assert files_in(place / "result") == expected
    assert {path.relative_to(place / "result").as_posix() for path in paths} == set(expected)
    assert sum(heard) == sum(map(len, expected.values()))


def test_named_files_come_alone(api: Client, stage: Stage, place: Path) -> None:
    job_id = stage.succeeded(FILES)
    api.download(job_id, place / "result", ["artifact.tar.gz"])
    assert files_in(place / "result") == {"artifact.tar.gz": b"all of them"}
    with pytest.raises(TransferError, match=r"no file 'plan.json'; it has .*trace.jsonl"):
        api.download(job_id, place / "other", ["trace.jsonl", "plan.json"])
    assert not (place / "other").exists()


def test_what_broke_off_goes_on_where_it_ended(patient: Client, proxy: Unreliable, stage: Stage, place: Path) -> None:
    job_id = stage.succeeded({WEIGHTS: FILES[WEIGHTS]})
    proxy.concerns = lambda method, path: path.endswith("safetensors")
    cuts = [300_000, 200_000, 400_000]
    proxy.faults = [Fault(cut_after=cuts[0]), Fault(status=503), *(Fault(cut_after=cut) for cut in cuts[1:])]
    patient.download(job_id, place)
    assert files_in(place / "model") == {"model.safetensors": FILES[WEIGHTS]}
    assert not (place / ".axformer-parts").exists()
    asked = [headers.get("range") for _, path, headers in proxy.requests if path.endswith("safetensors")]
    assert asked == [None, "bytes=300000-", "bytes=300000-", "bytes=500000-", "bytes=900000-"]


def test_a_later_call_goes_on_with_what_an_earlier_one_left(
    patient: Client, proxy: Unreliable, stage: Stage, place: Path
) -> None:
    job_id = stage.succeeded({WEIGHTS: FILES[WEIGHTS]})

    class Interrupted(BaseException):
        pass

    def interrupt(added: int) -> None:
        proxy.faults = [Fault(cut_after=500_000)]
        raise Interrupted

    proxy.concerns = lambda method, path: path.endswith("safetensors")
    with pytest.raises(Interrupted):
        patient.download(job_id, place, on_progress=interrupt)
    proxy.faults = [Fault(cut_after=500_000), Fault(status=403)]
    with pytest.raises(Exception, match="403"):
        patient.download(job_id, place)
    visible = [path for path in place.rglob("*") if path.is_file() and ".axformer-parts" not in path.parts]
    assert visible == []
    proxy.requests.clear()
    patient.download(job_id, place)
    assert files_in(place / "model") == {"model.safetensors": FILES[WEIGHTS]}
    (asked,) = [headers.get("range") for _, path, headers in proxy.requests if path.endswith("safetensors")]
    assert asked == "bytes=500000-"


def test_a_file_that_is_there_and_whole_is_not_fetched_again(
    patient: Client, proxy: Unreliable, stage: Stage, place: Path
) -> None:
    job_id = stage.succeeded(FILES)
    patient.download(job_id, place)
    (place / "model" / "config.json").write_bytes(b"[]")
    proxy.requests.clear()
    patient.download(job_id, place)
    assert [path.rpartition("/")[2] for _, path, _ in proxy.requests] == ["artifacts", "config.json"]
    assert (place / "model" / "config.json").read_bytes() == b"{}"


def test_a_damaged_part_is_thrown_away_and_fetched_anew(api: Client, stage: Stage, place: Path) -> None:
    job_id = stage.succeeded({WEIGHTS: FILES[WEIGHTS]})
    (artifact,) = api.artifacts(job_id)
    for rubbish in (b"rubbish", b"x" * SIZE, b"x" * (SIZE + 1)):
        parts = place / str(len(rubbish)) / ".axformer-parts"
        parts.mkdir(parents=True)
        (parts / artifact.sha256).write_bytes(rubbish)
        api.download(job_id, parts.parent)
        assert files_in(parts.parent) == {WEIGHTS: FILES[WEIGHTS]}


def test_bytes_that_are_not_those_promised_are_never_seen(
    patient: Client, proxy: Unreliable, stage: Stage, place: Path
) -> None:
    job_id = stage.succeeded({WEIGHTS: FILES[WEIGHTS]})
    proxy.concerns = lambda method, path: path.endswith("safetensors")
    proxy.faults = [Fault(damaged=True)] * 2
    with pytest.raises(TransferError, match="another SHA-256"):
        patient.download(job_id, place)
    assert files_in(place) == {}


def test_names_that_leave_the_directory_are_refused(api: Client, stage: Stage, place: Path) -> None:
    for name in ("../up", "/etc/passwd", "a/../../up", "..", "a\\b", "C:up", ".axformer-parts/x", ""):
        job_id = stage.succeeded({name: b"evil"})
        with pytest.raises(TransferError, match="leads out of the directory"):
            api.download(job_id, place / "in" / "result")
        assert files_in(place) == {}


def test_a_link_does_not_lead_out_of_the_directory(api: Client, stage: Stage, place: Path) -> None:
    job_id = stage.succeeded({"model/config.json": b"{}"})
    (place / "elsewhere").mkdir()
    (place / "result").mkdir()
    (place / "result" / "model").symlink_to(place / "elsewhere")
    with pytest.raises(TransferError, match="by a link"):
        api.download(job_id, place / "result")
    assert files_in(place / "elsewhere") == {}


def test_a_job_without_files_gives_none_and_a_job_that_is_not_there_is_refused(
    api: Client, stage: Stage, place: Path
) -> None:
    assert api.download(stage.queued(), place / "result") == []
    assert not (place / "result").exists()
    with pytest.raises(NotFoundError):
        api.download("job_none", place / "result")
