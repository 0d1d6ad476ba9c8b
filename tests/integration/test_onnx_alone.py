"""The ONNX form serves where neither PyTorch nor transformers nor this package is installed, by the script in the docs."""

import json
import subprocess
import venv
from pathlib import Path

import pytest
import torch

import axformer.auto  # noqa: F401 - registers the compact models
from axformer.config import make_config
from axformer.data.reading import rows_of
from axformer.forms.files import write_tokenizer
from axformer.forms.onnx import write_onnx
from axformer.forms.onnx_int8 import write_onnx_int8
from axformer.forms.smoothing import some_inputs
from axformer.intake.dataset import prepare
from axformer.model.compact import compact
from tests.axformer.test_embedding import checkpoint_of as embedder_of
from tests.axformer.test_embedding import vectors_of
from tests.family_cases import Case, checkpoint_of, data_of, some_plan

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "serve_onnx.py"
PACKAGES = ("onnxruntime", "tokenizers", "numpy")
ABSENT = ("torch", "transformers", "axformer")
TEXTS = ["word1 word2 word3", "word4", "word5 word6 word7 word8 word9 word10 word11"]
TOLERANCE = 1e-4
CASE = Case("bert", "classification")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with what the script needs and nothing more."""
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, with_pip=True)
    command = [home / "bin" / "python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt"]
    ran = subprocess.run([*command, *PACKAGES], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        pytest.skip(f"pip cannot install {', '.join(PACKAGES)} here: {ran.stderr.strip()}")
    return home / "bin" / "python"


def served(python: Path, form: Path) -> list[dict[str, object]]:
    """What the script prints of the texts, in a directory where no module of ours can be found."""
    command = [python, "-I", SCRIPT, form, *TEXTS]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=form, env={})
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_a_form_serves_alone(bare_python: Path, tmp_path: Path) -> None:
    checkpoint = checkpoint_of(CASE)
    model = compact(checkpoint.model, checkpoint.architecture, some_plan(1))
    write_onnx(model, checkpoint.tokenizer, data_of(CASE).samples.encoded, tmp_path / "float")
    write_tokenizer(checkpoint.companions, tmp_path / "float")
    inputs = some_inputs(data_of(CASE).samples.encoded, checkpoint.tokenizer)
    write_onnx_int8(tmp_path / "float", tmp_path / "int8", inputs, threads=1)
    with torch.inference_mode():
        wanted = model(**checkpoint.tokenizer(TEXTS, padding=True, return_tensors="pt")).logits
    for form, tolerance in (("float", TOLERANCE), ("int8", float(wanted.std()))):
        answers = served(bare_python, tmp_path / form)
        torch.testing.assert_close(torch.tensor([row["logits"] for row in answers]), wanted, rtol=0, atol=tolerance)
        assert {str(row["label"]) for row in answers} <= set(model.config.id2label.values())
    assert [row["label"] for row in served(bare_python, tmp_path / "float")] == [
        model.config.id2label[place] for place in wanted.argmax(dim=-1).tolist()
    ]


def test_an_embedder_serves_alone(bare_python: Path, tmp_path: Path) -> None:
    checkpoint = embedder_of("bert")
    rows = prepare(rows_of([{"text": text} for text in TEXTS]), checkpoint, make_config()).samples.encoded
    write_onnx(checkpoint.model, checkpoint.tokenizer, rows, tmp_path)
    write_tokenizer(checkpoint.companions, tmp_path)
    found = [row["embedding"] for row in served(bare_python, tmp_path)]
    torch.testing.assert_close(
        torch.tensor(found), vectors_of(checkpoint.model, checkpoint, TEXTS), rtol=0, atol=TOLERANCE
    )


@pytest.mark.parametrize("name", ABSENT)
def test_what_is_said_to_be_absent_is_absent(bare_python: Path, name: str) -> None:
    ran = subprocess.run([bare_python, "-I", "-c", f"import {name}"], capture_output=True, text=True, check=False)
    assert f"No module named '{name}'" in ran.stderr
