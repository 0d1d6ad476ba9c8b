"""No command fails because a console cannot show a character."""

import io
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.cli.characters import replace_unknown_characters

ENCODINGS = ["cp1252", "ascii", "cp437", "utf-8"]
PROGRAM = "from axformer.cli.main import app; app(prog_name='axformer')"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "arguments", "code", "words"),
    [
        ({"PYTHONIOENCODING": "cp1252"}, ["slim", "--help"], 0, "+- Arguments"),
        ({"PYTHONIOENCODING": "ascii"}, ["--help"], 0, "+- On this machine"),
        (
            {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
            ["prune", "model", "--data", "dev.jsonl", "--output", "out", "--columns", "→…Ω=a"],
            2,
            "is not name=column",
        ),
    ],
)
def test_commands_write_what_a_console_can_show(
    environment: dict[str, str], arguments: list[str], code: int, words: str
) -> None:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, check=False, env=os.environ | environment
    )
    shown = (process.stdout + process.stderr).decode(environment.get("PYTHONIOENCODING", "ascii"))
    assert process.returncode == code, shown
    assert words in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=st.text())
def test_any_text_is_written_and_stays_as_long(encoding: str, text: str) -> None:
    stream, before = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline=""), (sys.stdout, sys.stderr)
    sys.stdout = sys.stderr = stream
    try:
        replace_unknown_characters()
    finally:
        sys.stdout, sys.stderr = before
    stream.write(text + "\ud800→")
    stream.flush()
    shown = stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    assert len(shown) == len(text) + 2
    assert shown.endswith("?→" if encoding == "utf-8" else "?>")
