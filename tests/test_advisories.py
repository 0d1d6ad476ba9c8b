"""`make audit` says what is vulnerable, and never that all is well where nobody has looked."""

import json
from pathlib import Path

import pytest

from tests.advisories import main
from tests.loopback import Answer, Loopback

SIX = "six==1.17.0 --hash=sha256:" + "4" * 64
OLD = "urllib3==1.20 --hash=sha256:" + "5" * 64
NOWHERE = "http://127.0.0.1:9/v1/query"


def advisories(method: str, target: str, headers: dict[str, str]) -> Answer:
    """What OSV answers to each query; the server does not see which package it is for."""
    events = [{"introduced": "0"}, {"fixed": "1.24.2"}]
    affected = [
        {"package": {"ecosystem": "PyPI", "name": "urllib3"}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}
    ]
    bug = {"id": "PYSEC-2019-132", "summary": "x", "affected": affected, "modified": "2026-01-01T00:00:00Z"}
    return Answer(200, {"Content-Type": "application/json"}, json.dumps({"vulns": [bug]}).encode())


def nothing(method: str, target: str, headers: dict[str, str]) -> Answer:
    return Answer(200, {"Content-Type": "application/json"}, b"{}")


@pytest.mark.parametrize(
    ("answers", "line", "code", "said"),
    [
        (advisories, OLD, 1, "urllib3 1.20: PYSEC-2019-132, mended in 1.24.2"),
        (nothing, SIX, 0, "1 packages, no known vulnerability"),
        (None, SIX, 2, "no database of advisories answers, so nothing was audited: "),
    ],
)
def test_the_exit_code_says_whether_anybody_has_looked(tmp_path: Path, capsys, answers, line, code, said) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(f"{line}\n")
    if answers is None:
        assert main(["--osv", NOWHERE], [file]) == code
    else:
        with Loopback(answers) as database:
            assert main(["--osv", f"{database.url}/v1/query"], [file]) == code
    assert capsys.readouterr().out.startswith(said)
