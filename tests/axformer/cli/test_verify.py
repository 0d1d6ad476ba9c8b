"""A result is taken as its service's only if it is signed and no file of it has changed."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from axformer import __version__
from axformer.cli.main import app
from axformer.wire.provenance import PROVENANCE, statement
from store.settings import Settings
from store.signing import ResultKey, result_key

FILES = {"plan.json": b"{}", "model/config.json": b"[]"}
MADE = {
    "job": "job_1",
    "kind": "pass",
    "worker": "host:1",
    "started": "2026-01-01T00:00:00+00:00",
    "finished": "2026-01-01T00:01:00+00:00",
    "axformer": __version__,
    "commit": "abc",
}
INPUTS = {"checkpoint": {"uri": "hf://acme/reviews", "sha256": "0" * 64}}


@pytest.fixture
def key(tmp_path: Path) -> ResultKey:
    return result_key(Settings(database_url=SecretStr("postgresql://nobody@localhost/none"), var_dir=tmp_path / "var"))


@pytest.fixture
def result(tmp_path: Path, key: ResultKey) -> Path:
    """A downloaded result, beside the key of its service."""
    for name, content in FILES.items():
        (tmp_path / "result" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "result" / name).write_bytes(content)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()} | {"gone.json": "1" * 64}
    signed = key.sign(statement(digests, INPUTS, MADE))
    (tmp_path / "result" / PROVENANCE).write_text(signed.model_dump_json())
    (tmp_path / "key.pem").write_text(key.public)
    return tmp_path / "result"


def verify(result: Path, key: Path | str, *more: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["verify", str(result), "--key", str(key), *more])
    return done.exit_code, done.output


def test_a_result_as_it_was_signed_tells_its_job_and_its_inputs(result: Path) -> None:
    code, said = verify(result, result.parent / "key.pem")
    assert code == 0, said
    for words in ("2 files of job job_1, unchanged", "urn:axformer:worker:host:1", "hf://acme/reviews", "0" * 64):
        assert words in said
    told = json.loads(verify(result, result.parent / "key.pem", "--json")[1])
    assert (told["job"], told["files"], told["inputs"][0]["name"]) == ("job_1", 2, "checkpoint")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda result: (result / "plan.json").write_text("[]"), "'plan.json' was changed"),
        (lambda result: (result / "model" / "more.py").write_text(""), "'model/more.py' is not signed"),
        (lambda result: [(result / name).unlink() for name in FILES], "has no signed file"),
        (lambda result: (result / PROVENANCE).unlink(), "only a service's results are signed"),
        (lambda result: (result / PROVENANCE).write_text("{}"), "is no signed statement"),
    ],
)
def test_what_is_not_as_it_was_signed_is_refused(result: Path, change: object, said: str) -> None:
    assert callable(change)
    change(result)
    code, told = verify(result, result.parent / "key.pem")
    assert code in (1, 2)
    assert said in " ".join(told.split())


@pytest.mark.parametrize("part", ["payload", "sig"])
def test_every_character_of_the_statement_and_the_signature_counts(result: Path, part: str) -> None:
    envelope = json.loads((result / PROVENANCE).read_text())
    holder = envelope if part == "payload" else envelope["signatures"][0]
    whole = holder[part]
    for place in range(0, len(whole) - 4, max(1, len(whole) // 40)):
        holder[part] = whole[:place] + ("A" if whole[place] != "A" else "B") + whole[place + 1 :]
        (result / PROVENANCE).write_text(json.dumps(envelope))
        assert verify(result, result.parent / "key.pem")[0] == 1
    holder[part] = whole


def test_the_key_of_another_service_or_none_is_told(result: Path, tmp_path: Path) -> None:
    other = Settings(database_url=SecretStr("postgresql://nobody@localhost/none"), var_dir=tmp_path / "other")
    (tmp_path / "other.pem").write_text(result_key(other).public)
    assert "not signed with this key" in verify(result, tmp_path / "other.pem")[1]
    (tmp_path / "odd.pem").write_text("no key")
    assert verify(result, tmp_path / "odd.pem")[0] == 2
    assert verify(result, tmp_path / "missing.pem")[0] == 2
    assert "gives no key" in verify(result, "http://127.0.0.1:9")[1]


@pytest.fixture
def address(key: ResultKey) -> Iterator[str]:
    """A service that tells its key."""

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"status": "ok", "result_key": key.public, "later": 1}).encode()
            self.send_response(200 if self.path == "/healthz" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Health)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_key_is_taken_from_the_service_itself(result: Path, address: str) -> None:
    assert verify(result, address)[0] == 0
