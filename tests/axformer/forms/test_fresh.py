"""A real interpreter for every program that loads forms, and that the forked ones of all other tests do as it does."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from axformer.config import PassConfig
from axformer.data.reading import read_rows
from axformer.forms import interpreter
from axformer.forms.fresh import FreshPython, program_of
from axformer.forms.interpreter import FreshInterpreter
from axformer.forms.kinds import BASE, COMPACT, KINDS, ONNX, ONNX_INT8, ZEROED
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.intake.rebuilt import check_inputs
from tests.forked import ForkedInterpreter, forked_interpreter, start

FORMS = [BASE.name, pytest.param(COMPACT, marks=pytest.mark.slow), pytest.param(ONNX, marks=pytest.mark.slow)]
"""One for each program and runtime. The others are loaded by real Pythons in :mod:`tests.integration`."""
ABOUT_ITSELF = """
import os, sys
print(os.getcwd(), os.environ.get("ONLY_NOW"), sys.argv[1:], "axformer" in sys.modules, __name__, sys.stdin.readline())
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_a_form_computes_the_same_in_a_real_interpreter_and_in_a_forked_one(
    name: str, request: pytest.FixtureRequest, checkpoint: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result: Path = request.getfixturevalue("every_form" if name == ONNX else "result")
    whole = load_checkpoint(checkpoint)
    encoded = prepare(read_rows(str(data)), whole, PassConfig(max_length=10)).samples.encoded
    home = checkpoint if name == BASE.name else result / KINDS[name].directory
    program = program_of(name, whole.head.auto_class.__name__)
    asked = home, "cpu", check_inputs(encoded, whole.tokenizer, "cpu")
    forked = FreshPython(program).run(*asked)
    monkeypatch.setattr(interpreter, "launch", FreshInterpreter)
    with FreshPython(program) as python:
        real = python.run(*asked)
    assert real.load_seconds > 0
    assert 0 < real.idle_bytes <= real.peak_bytes
    assert real.texts.equal(forked.texts)
    assert set(real.outputs) == set(forked.outputs)
    for output, values in real.outputs.items():
        assert values.equal(forked.outputs[output])


@pytest.mark.parametrize(
    "code",
    [
        ABOUT_ITSELF,
        "import sys; print('out'); sys.exit(3)",
        "raise SystemExit('its reason')",
        "print('out'); raise ValueError('its reason')",
        "import os; os.kill(os.getpid(), 9)",
    ],
)
def test_a_program_ends_in_a_forked_interpreter_as_in_a_real_one(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ONLY_NOW", "this")
    Path("program.py").write_text(code, encoding="utf-8")
    real, forked = (
        launch(["-I", "program.py", "an", "argument"]).tell("a word")
        for launch in (FreshInterpreter, ForkedInterpreter)
    )
    assert (forked.returncode, forked.stdout) == (real.returncode, real.stdout)
    assert forked.stderr.splitlines()[-1:] == real.stderr.splitlines()[-1:]


@pytest.mark.parametrize("name", [ONNX, ONNX_INT8])
def test_an_onnx_form_is_loaded_without_pytorch_transformers_and_this_package(name: str) -> None:
    program = program_of(name, "AutoModelForSequenceClassification")
    asked_nothing = subprocess.run(
        [sys.executable, "-X", "importtime", *program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        text=True,
    )
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in asked_nothing.stderr.splitlines()}
    assert "onnxruntime" in imported
    assert imported.isdisjoint({"torch", "transformers", "axformer"})


@pytest.mark.slow
@pytest.mark.parametrize("name", [COMPACT, ZEROED])
def test_a_process_that_nobody_lets_run_ends(name: str) -> None:
    program = program_of(name, "AutoModelForSequenceClassification")
    asked_nothing = subprocess.run(
        [sys.executable, *program], stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    assert asked_nothing.stdout == b""
    started = FreshInterpreter(program)
    for _ in range(2):
        started.end()
        assert started._process.returncode == -signal.SIGKILL


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="threads are counted in /proc")
def test_what_forks_has_one_thread() -> None:
    assert forked_interpreter(["-c", "print(1)"]).stdout == "1\n"
    assert len(list(Path(f"/proc/{start().pid}/task").iterdir())) == 1
